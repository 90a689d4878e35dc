package staging

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Versions lists every version of key, delete markers included, as references
// for Delete. On a bucket without versions that is the key itself, if it is
// there. With ErrListingBroken come those that could be found: some servers never get beyond a page of one key's
// versions, and show the next ones when these are deleted.
func (b *Bucket) Versions(ctx context.Context, key string) ([]ObjectRef, error) {
	var refs []ObjectRef
	seen := map[ObjectRef]bool{}
	pages := s3.NewListObjectVersionsPaginator(b.client, &s3.ListObjectVersionsInput{
		Bucket: aws.String(b.name),
		Prefix: aws.String(key),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list versions of %q: %w", key, storageError(err))
		}
		found, news := versionsOf(page), false
		for _, ref := range found {
			if seen[ref] {
				continue
			}
			seen[ref], news = true, true
			if ref.Key == key {
				refs = append(refs, ref)
			}
		}
		if !news && pages.HasMorePages() {
			return refs, fmt.Errorf("list versions of %q: %w: a page of nothing new", key, ErrListingBroken)
		}
	}
	return refs, nil
}

// versionsOf are the versions of a page, and its delete markers.
func versionsOf(page *s3.ListObjectVersionsOutput) []ObjectRef {
	refs := make([]ObjectRef, 0, len(page.Versions)+len(page.DeleteMarkers))
	for _, v := range page.Versions {
		refs = append(refs, ObjectRef{Key: aws.ToString(v.Key), VersionID: aws.ToString(v.VersionId)})
	}
	for _, m := range page.DeleteMarkers {
		refs = append(refs, ObjectRef{Key: aws.ToString(m.Key), VersionID: aws.ToString(m.VersionId)})
	}
	return refs
}
