package staging

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// ErrListingBroken reports that the storage's listing is not one to rely on: it
// said that there is more without saying where, or its keys did not increase.
var ErrListingBroken = errors.New("the storage's listing is broken")

// Keys lists the keys that can be read under prefix, which is taken as it
// stands, in byte order and page by page. Whatever breaks off the listing is
// its last element, as an error: without one, the listing was whole.
func (b *Bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for token := (*string)(nil); ; {
			page, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
				Bucket: aws.String(b.name), Prefix: aws.String(prefix), ContinuationToken: token,
			})
			if err != nil {
				yield("", fmt.Errorf("list keys under %q: %w", prefix, storageError(err)))
				return
			}
			for _, found := range page.Contents {
				key := aws.ToString(found.Key)
				if key <= last {
					yield("", fmt.Errorf("list keys under %q: %w: %q after %q", prefix, ErrListingBroken, key, last))
					return
				}
				last = key
				if !yield(key, nil) {
					return
				}
			}
			if !aws.ToBool(page.IsTruncated) {
				return
			}
			if token = page.NextContinuationToken; aws.ToString(token) == "" {
				yield("", fmt.Errorf("list keys under %q: %w: truncated without a token", prefix, ErrListingBroken))
				return
			}
		}
	}
}
