package staging

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
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

// Delete removes up to MaxDeletes objects, in one request where the storage knows how, and returns the answer
// for each, in the order of refs. If the error is not nil the outcome is
// unknown for all of them; deleting again is safe. A storage that throttles is not asked again here: ErrThrottled,
// of the whole or of single objects, leaves it to the caller when to go on.
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
	how := b.deletes.way()
	if how == DeleteSingle {
		return b.deleteEach(ctx, refs, beforeSend)
	}
	results, err := b.deleteTogether(ctx, refs, how == DeleteMD5, beforeSend)
	if how == DeleteAuto && refusesForm(err) {
		b.deletes.fallBack(ctx, err)
		return b.deleteEach(ctx, refs, beforeSend)
	}
	return results, err
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
