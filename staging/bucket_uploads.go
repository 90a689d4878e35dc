package staging

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// UploadRef names an unfinished upload in parts.
type UploadRef struct {
	Key      string
	UploadID string
}

// Uploads lists the unfinished uploads in parts of the keys under prefix, which is taken as it stands, page by page:
// each page as it comes. Whatever breaks off the listing is its last element, as an error: without one, the listing was
// whole. A storage that does not know the request has none.
func (b *Bucket) Uploads(ctx context.Context, prefix string) iter.Seq2[[]UploadRef, error] {
	return func(yield func([]UploadRef, error) bool) {
		for after := (UploadRef{}); ; {
			page, err := b.uploadsAfter(ctx, prefix, after)
			if statusOf(err) == http.StatusNotImplemented {
				return // nor can there be any
			}
			if err != nil {
				yield(nil, fmt.Errorf("list uploads under %q: %w", prefix, storageError(err)))
				return
			}
			if !yield(uploadsOf(page), nil) || !aws.ToBool(page.IsTruncated) {
				return
			}
			next := UploadRef{aws.ToString(page.NextKeyMarker), aws.ToString(page.NextUploadIdMarker)}
			if next.Key == "" || next == after {
				yield(nil, fmt.Errorf("list uploads under %q: %w: truncated, and goes on at %q after %q", prefix, ErrListingBroken, next.Key, after.Key))
				return
			}
			after = next
		}
	}
}

// uploadsAfter lists a page of the uploads under prefix that come after one.
func (b *Bucket) uploadsAfter(ctx context.Context, prefix string, after UploadRef) (*s3.ListMultipartUploadsOutput, error) {
	input := &s3.ListMultipartUploadsInput{
		Bucket: aws.String(b.name), Prefix: aws.String(prefix),
		KeyMarker: optional(after.Key), UploadIdMarker: optional(after.UploadID),
	}
	page, err := b.client.ListMultipartUploads(ctx, input)
	if after.UploadID == "" || codeOf(err) != "InvalidArgument" {
		return page, err
	}
	// Some servers do not take the marker that they have given. Without it the list goes on at the next key: what the
	// last one has left is asked for by itself.
	input.UploadIdMarker = nil
	if page, err = b.client.ListMultipartUploads(ctx, input); err != nil || after.Key == prefix {
		return page, err
	}
	rest, err := b.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: aws.String(b.name), Prefix: aws.String(after.Key)})
	if err != nil {
		return nil, err
	}
	for _, u := range rest.Uploads {
		if aws.ToString(u.Key) == after.Key {
			page.Uploads = append(page.Uploads, u)
		}
	}
	return page, nil
}

// uploadsOf are the uploads of a page.
func uploadsOf(page *s3.ListMultipartUploadsOutput) []UploadRef {
	refs := make([]UploadRef, len(page.Uploads))
	for i, u := range page.Uploads {
		refs[i] = UploadRef{Key: aws.ToString(u.Key), UploadID: aws.ToString(u.UploadId)}
	}
	return refs
}

// AbortUpload ends one upload of key in parts, and removes its parts. One that is not there has ended already.
// beforeSend is as in Delete, and so is what is throttled.
func (b *Bucket) AbortUpload(ctx context.Context, key, uploadID string, beforeSend func(context.Context) error) error {
	_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: aws.String(b.name), Key: aws.String(key), UploadId: aws.String(uploadID),
	}, afterSigning(beforeSend), leavingThrottles)
	if stopped, ok := errors.AsType[*stoppedError](err); ok {
		return fmt.Errorf("abort upload of %q: before sending: %w", key, stopped.error)
	}
	if err != nil && !isMissing(err) {
		return fmt.Errorf("abort upload of %q: %w", key, storageError(err))
	}
	return nil
}

// AbortUploads ends every unfinished upload of key in parts, also those that nobody has written down.
// beforeSend is as in Delete.
func (b *Bucket) AbortUploads(ctx context.Context, key string, beforeSend func(context.Context) error) error {
	for page, err := range b.Uploads(ctx, key) {
		if err != nil {
			return err
		}
		for _, u := range page {
			if u.Key != key { // one that only begins so
				continue
			}
			if err := b.AbortUpload(ctx, key, u.UploadID, beforeSend); err != nil {
				return err
			}
		}
	}
	return nil
}
