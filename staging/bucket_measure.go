package staging

import (
	"context"
	"errors"
	"net/http"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/fenceline/fenceline/internal/metrics"
)

// measured has every call of a client counted: the first step of a call, so that all its attempts are one. It is
// put on the client that sends, and not on the one that only signs.
func measured(m *metrics.Metrics) func(*s3.Options) {
	step := middleware.InitializeMiddlewareFunc("Measure", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		began := time.Now()
		out, metadata, err := next.HandleInitialize(ctx, in)
		m.StorageCall(awsmiddleware.GetOperationName(ctx), resultOf(err), time.Since(began))
		return out, metadata, err
	})
	return s3.WithAPIOptions(func(stack *middleware.Stack) error {
		return stack.Initialize.Add(step, middleware.After)
	})
}

// resultOf says how a call ended, for those who watch the storage.
func resultOf(err error) metrics.StorageResult {
	_, stopped := errors.AsType[*stoppedError](err)
	timeout, isNet := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	switch status := statusOf(err); {
	case err == nil:
		return metrics.StorageOK
	case stopped, errors.Is(err, context.Canceled):
		return metrics.StorageInterrupted
	case isMissing(err):
		return metrics.StorageNotFound
	case status == http.StatusPreconditionFailed, codeOf(err) == "ConditionalRequestConflict":
		return metrics.StoragePreconditionFailed
	case isThrottled(err):
		return metrics.StorageThrottled
	case errors.Is(err, context.DeadlineExceeded), isNet && timeout.Timeout(), codeOf(err) == "RequestTimeout":
		return metrics.StorageTimeout
	}
	return metrics.StorageError
}
