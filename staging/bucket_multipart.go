package staging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// ErrNotCompleted reports that the storage made no object of the parts that were named: some are missing, or are
// not those that were uploaded.
var ErrNotCompleted = errors.New("the parts do not make the object")

// CreateUpload begins an upload of key in parts and returns its id. The bytes will be of contentType, unless it is "".
func (b *Bucket) CreateUpload(ctx context.Context, key, contentType string) (uploadID string, err error) {
	out, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: aws.String(b.name), Key: aws.String(key), ContentType: optional(contentType),
	})
	if err != nil {
		return "", fmt.Errorf("create upload of %q: %w", key, storageError(err))
	}
	return aws.ToString(out.UploadId), nil
}

// PresignPart signs the upload of one part of size bytes, valid as in PresignPut. A part may be uploaded again until
// the upload is completed.
func (b *Bucket) PresignPart(ctx context.Context, key, uploadID string, number int32, size int64, life time.Duration) (Upload, error) {
	signed, expiresAt, err := b.presign(ctx, life, func(opt func(*s3.PresignOptions)) (*v4.PresignedHTTPRequest, error) {
		return b.presigner.PresignUploadPart(ctx, &s3.UploadPartInput{
			Bucket: aws.String(b.name), Key: aws.String(key), UploadId: aws.String(uploadID),
			PartNumber: aws.Int32(number), ContentLength: aws.Int64(size),
		}, opt)
	})
	if err != nil {
		return Upload{}, fmt.Errorf("presign part %d of %q: %w", number, key, err)
	}
	return Upload{Method: signed.Method, URL: signed.URL, Headers: headersToSend(signed), ExpiresAt: expiresAt}, nil
}

// CompleteUpload makes the object of its parts, if nothing is under key: the bytes of a key are written once. Errors:
// ErrBytesChanged if something is there already, ErrNoBytes if there is no such upload (any more), ErrNotCompleted.
func (b *Bucket) CompleteUpload(ctx context.Context, key, uploadID string, parts []Part) error {
	named := make([]types.CompletedPart, len(parts))
	for i, p := range parts {
		named[i] = types.CompletedPart{PartNumber: aws.Int32(p.Number), ETag: aws.String(p.ETag)}
	}
	slices.SortFunc(named, func(x, y types.CompletedPart) int { return int(*x.PartNumber - *y.PartNumber) })
	_, err := b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(b.name), Key: aws.String(key), UploadId: aws.String(uploadID), IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: named},
	}, func(o *s3.Options) { o.HTTPClient = b.patient })
	switch codeOf(err) {
	case "InvalidPart", "InvalidPartOrder", "EntityTooSmall":
		err = fmt.Errorf("%w: %w", ErrNotCompleted, err)
	case "ConditionalRequestConflict": // another is being completed: who has won shows later
		err = fmt.Errorf("%w: %w", ErrStorageUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("complete upload of %q: %w", key, storageError(err))
	}
	return nil
}
