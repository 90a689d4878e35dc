package staging

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// hasVersions tells whether the bucket keeps versions, or has kept some: its plain listing then shows less than is there.
func (b *Bucket) hasVersions(ctx context.Context) (bool, error) {
	out, err := b.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: aws.String(b.name)})
	switch statusOf(err) {
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return false, nil // nor can there be any
	}
	if err != nil {
		return false, fmt.Errorf("read whether the bucket keeps versions: %w", storageError(err))
	}
	return out.Status != "", nil
}

// currentPage lists what can be read.
func (b *Bucket) currentPage(ctx context.Context, prefix string, at cursor) (listed, error) {
	out, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: aws.String(b.name), Prefix: aws.String(prefix), EncodingType: types.EncodingTypeUrl,
		StartAfter: optional(at.after), ContinuationToken: optional(at.token),
	})
	if err != nil {
		return listed{}, err
	}
	page := listed{found: make([]Stored, len(out.Contents))}
	for i, o := range out.Contents {
		key, err := keyIn(out.EncodingType, o.Key)
		if err != nil {
			return listed{}, err
		}
		page.found[i] = Stored{Key: key, Size: aws.ToInt64(o.Size)}
	}
	if aws.ToBool(out.IsTruncated) {
		page.next = &cursor{token: aws.ToString(out.NextContinuationToken)}
	}
	return page, nil
}

// versionPage lists versions and delete markers, which come apart, in one order of keys.
func (b *Bucket) versionPage(ctx context.Context, prefix string, at cursor) (listed, error) {
	from := at.after
	if from == "" {
		from = at.token
	}
	out, err := b.client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{
		Bucket: aws.String(b.name), Prefix: aws.String(prefix), EncodingType: types.EncodingTypeUrl,
		KeyMarker: optional(from), VersionIdMarker: optional(at.version),
	})
	if err != nil {
		return listed{}, err
	}
	var page listed
	add := func(key, version *string, size int64, marker bool) error {
		k, err := keyIn(out.EncodingType, key)
		page.found = append(page.found, Stored{Key: k, VersionID: aws.ToString(version), Size: size, Marker: marker})
		return err
	}
	for _, v := range out.Versions {
		if err := add(v.Key, v.VersionId, aws.ToInt64(v.Size), false); err != nil {
			return listed{}, err
		}
	}
	for _, m := range out.DeleteMarkers {
		if err := add(m.Key, m.VersionId, 0, true); err != nil {
			return listed{}, err
		}
	}
	slices.SortStableFunc(page.found, func(x, y Stored) int { return strings.Compare(x.Key, y.Key) })
	if aws.ToBool(out.IsTruncated) {
		next, err := keyIn(out.EncodingType, out.NextKeyMarker)
		if err != nil {
			return listed{}, err
		}
		page.next = &cursor{token: next, version: aws.ToString(out.NextVersionIdMarker)}
	}
	return page, nil
}

// uploadPage lists the keys of unfinished uploads, each once. The next page begins after the last key, whatever else there
// is of that: not every server can go on in the middle of a key.
func (b *Bucket) uploadPage(ctx context.Context, prefix string, at cursor) (listed, error) {
	out, err := b.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{
		Bucket: aws.String(b.name), Prefix: aws.String(prefix), EncodingType: types.EncodingTypeUrl, KeyMarker: optional(at.after),
	})
	if statusOf(err) == http.StatusNotImplemented {
		return listed{}, nil // nor can there be any
	}
	if err != nil {
		return listed{}, err
	}
	var page listed
	last := at.after
	for _, u := range out.Uploads {
		key, err := keyIn(out.EncodingType, u.Key)
		if err != nil {
			return listed{}, err
		}
		if len(page.found) == 0 || key != last {
			page.found = append(page.found, Stored{Key: key})
		}
		last = key
	}
	if aws.ToBool(out.IsTruncated) {
		page.next = &cursor{after: last}
	}
	return page, nil
}
