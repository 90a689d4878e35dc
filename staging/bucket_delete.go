package staging

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// MaxDeletes is how many objects one call of Delete may name.
const MaxDeletes = 1000

// ObjectRef names stored bytes: a key, and on a versioned bucket the version.
type ObjectRef struct {
	Key       string
	VersionID string
}

// DeleteResult is the storage's answer for one of the objects of a Delete.
type DeleteResult struct {
	ObjectRef

	// Hidden reports that the bytes, if there were any, are still there, behind
	// a delete marker: the bucket is versioned and no version was named. Versions
	// tells what to name.
	Hidden bool

	// Err is nil if nothing can be read under the reference any more, also
	// where nothing was there before.
	Err error
}

// Delete removes up to MaxDeletes objects in one request and returns the answer
// for each, in the order of refs. If the error is not nil the outcome is
// unknown for all of them; deleting again is safe.
//
// beforeSend runs after a request has been signed and before it is sent, for
// every attempt; an error from it stops the request and is returned; it may be
// nil. Signatures age: whoever checks in beforeSend that it may still delete, and is paused
// after that, is refused by the storage when it goes on too late.
func (b *Bucket) Delete(ctx context.Context, refs []ObjectRef, beforeSend func(context.Context) error) ([]DeleteResult, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	if len(refs) > MaxDeletes {
		return nil, fmt.Errorf("delete %d objects: over the limit of %d", len(refs), MaxDeletes)
	}
	named := make([]types.ObjectIdentifier, len(refs))
	for i, ref := range refs {
		named[i] = types.ObjectIdentifier{Key: aws.String(ref.Key), VersionId: optional(ref.VersionID)}
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: aws.String(b.name),
		Delete: &types.Delete{Objects: named},
	}, afterSigning(beforeSend))
	if stopped, ok := errors.AsType[*stoppedError](err); ok {
		return nil, fmt.Errorf("delete %d objects: before sending: %w", len(refs), stopped.error)
	}
	if err != nil {
		return nil, fmt.Errorf("delete %d objects: %w", len(refs), storageError(err))
	}
	return deleteResults(refs, out), nil
}

// Versions lists every version of key, delete markers included, as references
// for Delete. On a bucket without versions that is the key itself, if it is
// there.
func (b *Bucket) Versions(ctx context.Context, key string) ([]ObjectRef, error) {
	var refs []ObjectRef
	pages := s3.NewListObjectVersionsPaginator(b.client, &s3.ListObjectVersionsInput{
		Bucket: aws.String(b.name),
		Prefix: aws.String(key),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list versions of %q: %w", key, storageError(err))
		}
		for _, v := range page.Versions {
			if aws.ToString(v.Key) == key {
				refs = append(refs, ObjectRef{Key: key, VersionID: aws.ToString(v.VersionId)})
			}
		}
		for _, m := range page.DeleteMarkers {
			if aws.ToString(m.Key) == key {
				refs = append(refs, ObjectRef{Key: key, VersionID: aws.ToString(m.VersionId)})
			}
		}
	}
	return refs, nil
}

// deleteResults finds the answer for each of refs. A reference that the storage
// passed over in silence counts as not deleted.
func deleteResults(refs []ObjectRef, out *s3.DeleteObjectsOutput) []DeleteResult {
	answers := make(map[ObjectRef]DeleteResult, len(refs))
	for _, d := range out.Deleted {
		ref := ObjectRef{Key: aws.ToString(d.Key), VersionID: aws.ToString(d.VersionId)}
		answers[ref] = DeleteResult{Hidden: aws.ToBool(d.DeleteMarker) && ref.VersionID == ""}
	}
	for _, e := range out.Errors {
		ref := ObjectRef{Key: aws.ToString(e.Key), VersionID: aws.ToString(e.VersionId)}
		err := error(&smithy.GenericAPIError{Code: aws.ToString(e.Code), Message: aws.ToString(e.Message)})
		if isMissing(err) {
			err = nil
		}
		answers[ref] = DeleteResult{Err: storageError(err)}
	}
	results := make([]DeleteResult, len(refs))
	for i, ref := range refs {
		answer, ok := answers[ref]
		if !ok { // some servers leave the version out of their answer
			answer, ok = answers[ObjectRef{Key: ref.Key}]
		}
		if !ok {
			answer.Err = fmt.Errorf("%w: no answer for this key", ErrStorageUnavailable)
		}
		answer.ObjectRef = ref
		results[i] = answer
	}
	return results
}

// afterSigning has a client call check between the signing of a request and its
// sending.
func afterSigning(check func(context.Context) error) func(*s3.Options) {
	step := middleware.FinalizeMiddlewareFunc("BeforeSend", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if check == nil {
			return next.HandleFinalize(ctx, in)
		}
		if err := check(ctx); err != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, &stoppedError{err}
		}
		return next.HandleFinalize(ctx, in)
	})
	return s3.WithAPIOptions(func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(step, "Signing", middleware.After)
	})
}

// stoppedError carries the error of a check through the SDK, which would take
// some kinds of error as a reason to try again.
type stoppedError struct{ error }

// Unwrap returns the error of the check.
func (e *stoppedError) Unwrap() error { return e.error }

// RetryableError tells the SDK to leave it at that.
func (e *stoppedError) RetryableError() bool { return false }
