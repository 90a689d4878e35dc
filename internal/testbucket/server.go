package testbucket

import (
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
