package testbucket

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TypesChecksums tells whether the server says of the checksum under key what it is of: the whole, or its parts.
func (b *Bucket) TypesChecksums(t testing.TB, key string) bool {
	t.Helper()
	out, err := b.client.HeadObject(callContext(t), &s3.HeadObjectInput{
		Bucket: b.name(), Key: aws.String(key), ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		t.Fatalf("head %q: %v", key, err)
	}
	return out.ChecksumType != ""
}

// NamesFiles tells whether the server's keys are names of files, and so cannot be longer than those.
func (b *Bucket) NamesFiles(t testing.TB) bool {
	t.Helper()
	key := strings.Repeat("f", 900)
	_, err := b.client.PutObject(callContext(t), &s3.PutObjectInput{Bucket: b.name(), Key: aws.String(key), Body: bytes.NewReader(nil)})
	if err == nil {
		b.Delete(t, key)
	}
	return err != nil
}
