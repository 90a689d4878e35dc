package staging

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
)

// deletesAtOnce is how many single deletes are under way at the same time.
const deletesAtOnce = 8

// deleteEach removes the objects by a request each. What concerns all of them, and not one object, ends it. The versions
// of one key go one after the other: where a delete moves the next version to the front, two at once lose one.
func (b *Bucket) deleteEach(ctx context.Context, refs []ObjectRef, beforeSend func(context.Context) error) ([]DeleteResult, error) {
	results := make([]DeleteResult, len(refs))
	ofKey := map[string][]int{}
	for i, ref := range refs {
		ofKey[ref.Key] = append(ofKey[ref.Key], i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	for _, places := range ofKey {
		group.Go(func() error {
			for _, i := range places {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				var err error
				if results[i], err = b.deleteOne(ctx, refs[i], beforeSend); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("delete %d objects one by one: %w", len(refs), err)
	}
	return results, nil
}

func (b *Bucket) deleteOne(ctx context.Context, ref ObjectRef, beforeSend func(context.Context) error) (DeleteResult, error) {
	out, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{
		Bucket: aws.String(b.name), Key: aws.String(ref.Key), VersionId: optional(ref.VersionID),
	}, afterSigning(beforeSend), leavingThrottles)
	if stopped, ok := errors.AsType[*stoppedError](err); ok {
		return DeleteResult{}, fmt.Errorf("before sending: %w", stopped.error)
	}
	switch {
	case err == nil:
		return DeleteResult{ObjectRef: ref, Hidden: aws.ToBool(out.DeleteMarker) && ref.VersionID == ""}, nil
	case isMissing(err):
		return DeleteResult{ObjectRef: ref}, nil
	case concernsAll(err):
		return DeleteResult{}, storageError(err)
	}
	return DeleteResult{ObjectRef: ref, Err: storageError(err)}, nil
}

// concernsAll tells a storage that is away, or will have nothing from this client, from an object that it will not delete.
func concernsAll(err error) bool {
	switch codeOf(err) {
	case "":
		return true // it did not say
	case "NoSuchBucket", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed", "RequestExpired":
		return true
	}
	return isBrokenConnection(err)
}
