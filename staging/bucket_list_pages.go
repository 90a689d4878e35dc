package staging

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// currentPage lists what can be read.
func (b *Bucket) currentPage(ctx context.Context, r request) (listed, error) {
	out, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: aws.String(b.name), Prefix: aws.String(r.prefix), EncodingType: types.EncodingTypeUrl, MaxKeys: r.most(),
		StartAfter: optional(r.after), ContinuationToken: optional(r.token),
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
func (b *Bucket) versionPage(ctx context.Context, r request) (listed, error) {
	out, err := b.client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{
		Bucket: aws.String(b.name), Prefix: aws.String(r.prefix), EncodingType: types.EncodingTypeUrl, MaxKeys: r.most(),
		KeyMarker: optional(r.marker()), VersionIdMarker: optional(r.version),
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

// uploadPage lists unfinished uploads in parts, each as a version of its key: its id.
func (b *Bucket) uploadPage(ctx context.Context, r request) (listed, error) {
	page, err := b.askUploads(ctx, r)
	if statusOf(err) == http.StatusNotImplemented {
		return listed{}, nil // nor can there be any
	}
	if r.version == "" || codeOf(err) != "InvalidArgument" {
		return page, err
	}
	// Some servers do not take the marker that they have given. Without it the list goes on at the next key: what the
	// last one has left is asked for by itself.
	marker := r.version
	r.version = ""
	if page, err = b.askUploads(ctx, r); err != nil || r.marker() == r.prefix {
		return page, err
	}
	same, err := b.askUploads(ctx, request{prefix: r.marker(), size: r.size})
	if err != nil {
		return listed{}, err
	}
	left := slices.DeleteFunc(same.found, func(u Stored) bool { return u.Key != r.marker() })
	// What comes up to the marker was listed.
	left = left[1+slices.IndexFunc(left, func(u Stored) bool { return u.VersionID == marker }):]
	page.found = append(left, page.found...)
	return page, nil
}

// uploadKeyPage lists the keys of unfinished uploads, each once. The next page begins after the last key, whatever else there
// is of that: not every server can go on in the middle of a key.
func (b *Bucket) uploadKeyPage(ctx context.Context, r request) (listed, error) {
	page, err := b.uploadPage(ctx, r)
	page.found = slices.CompactFunc(page.found, func(x, y Stored) bool { return x.Key == y.Key })
	if page.next != nil {
		page.next = &cursor{after: r.after}
		if n := len(page.found); n > 0 {
			page.next.after = page.found[n-1].Key
		}
	}
	return page, err
}

// askUploads asks for one page of unfinished uploads.
func (b *Bucket) askUploads(ctx context.Context, r request) (listed, error) {
	out, err := b.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{
		Bucket: aws.String(b.name), Prefix: aws.String(r.prefix), EncodingType: types.EncodingTypeUrl, MaxUploads: r.most(),
		KeyMarker: optional(r.marker()), UploadIdMarker: optional(r.version),
	})
	if err != nil {
		return listed{}, err
	}
	page := listed{found: make([]Stored, len(out.Uploads))}
	for i, u := range out.Uploads {
		key, err := keyIn(out.EncodingType, u.Key)
		if err != nil {
			return listed{}, err
		}
		page.found[i] = Stored{Key: key, VersionID: aws.ToString(u.UploadId)}
	}
	if aws.ToBool(out.IsTruncated) {
		next, err := keyIn(out.EncodingType, out.NextKeyMarker)
		if err != nil {
			return listed{}, err
		}
		page.next = &cursor{token: next, version: aws.ToString(out.NextUploadIdMarker)}
	}
	return page, nil
}
