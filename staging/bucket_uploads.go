package staging

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// UploadRef names an unfinished upload in parts.
type UploadRef struct {
	Key      string
	UploadID string
}

// Uploads lists the unfinished uploads in parts of the keys under prefix, which is taken as it stands, in byte order of the
// keys and page by page: each page as it comes. Whatever breaks off the listing is its last element, as an error: without
// one, the listing was whole. A storage that does not know the request has none.
func (b *Bucket) Uploads(ctx context.Context, prefix string) iter.Seq2[[]UploadRef, error] {
	return func(yield func([]UploadRef, error) bool) {
		l := listing{prefix: prefix, several: true, fetch: b.uploadPage}
		l.pages(ctx, func(page []Stored, err error) bool {
			refs := make([]UploadRef, len(page))
			for i, u := range page {
				refs[i] = UploadRef{Key: u.Key, UploadID: u.VersionID}
			}
			if len(refs) > 0 && !yield(refs, nil) {
				return false
			}
			return err == nil || yield(nil, err)
		})
	}
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
