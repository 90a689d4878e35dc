package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/fenceline/fenceline/internal/stack"
)

const bucketName = "fenceline"

// storageClient is a client of the S3 server with its own credentials.
func storageClient(s *servers) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.s3.Endpoint),
		UsePathStyle: true,
		Region:       stack.Region,
		Credentials:  credentials.NewStaticCredentialsProvider(s.state.AccessKey, s.state.SecretKey, ""),
	})
}

// createBucket creates the bucket where it is missing.
func createBucket(ctx context.Context, s *servers) error {
	_, err := storageClient(s).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucketName)})
	var owned *types.BucketAlreadyOwnedByYou
	if err != nil && !errors.As(err, &owned) {
		return fmt.Errorf("create the bucket: %w", err)
	}
	return nil
}
