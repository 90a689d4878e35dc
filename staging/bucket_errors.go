package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

var (
	// ErrNoBytes reports that the storage holds no bytes under the key, or not
	// the version that was asked for.
	ErrNoBytes = errors.New("no bytes under this key")

	// ErrBytesChanged reports that the bytes under the key are not those whose
	// ETag was recorded: someone replaced them behind the service's back.
	ErrBytesChanged = errors.New("bytes are not those that were recorded")

	// ErrOverwrites reports that the storage lets a conditional create replace
	// an existing key, so that it cannot keep what was staged.
	ErrOverwrites = errors.New("storage ignores If-None-Match: *")

	// ErrFoldsCase reports that the storage takes keys that differ in the case
	// of letters for one: deleting the one would delete the other.
	ErrFoldsCase = errors.New("storage does not tell upper from lower case in keys")

	// ErrStorageUnavailable reports that the storage could not be asked or had
	// no answer: time-out, broken connection, 5xx, throttling that outlasted
	// the retries, or no credentials. Asking again later may help.
	ErrStorageUnavailable = errors.New("storage is unavailable")

	// ErrThrottled reports that the storage asks to be asked less often: SlowDown, 429 and their like. It is an
	// ErrStorageUnavailable that ends by waiting.
	ErrThrottled = fmt.Errorf("%w: it asks for fewer requests", ErrStorageUnavailable)
)

// storageError puts the sentinel that fits before an error of the SDK, and
// leaves an error that none fits as it is.
func storageError(err error) error {
	if kind := storageErrorKind(err); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

func storageErrorKind(err error) error {
	switch {
	case err == nil,
		errors.Is(err, ErrStorageUnavailable),
		errors.Is(err, context.Canceled): // the caller's own doing
		return nil
	case isMissing(err):
		return ErrNoBytes
	case statusOf(err) == http.StatusPreconditionFailed:
		return ErrBytesChanged
	case isThrottled(err):
		return ErrThrottled
	case isUnavailable(err):
		return ErrStorageUnavailable
	}
	return nil
}

// isThrottled tells a storage that is there, and wants less, from one that is away: a bare 503 may be a proxy's.
func isThrottled(err error) bool {
	code := codeOf(err)
	_, known := retry.DefaultThrottleErrorCodes[code]
	return known || strings.HasPrefix(code, "SlowDown") || statusOf(err) == http.StatusTooManyRequests
}

// isMissing tells a missing key, or upload in parts, from a missing bucket, which is a fault of the
// configuration. (An answer to HEAD has no body to tell them by: NotFound.)
func isMissing(err error) bool {
	switch codeOf(err) {
	case "NoSuchKey", "NoSuchVersion", "NoSuchUpload", "NotFound":
		return true
	}
	return false
}

func isUnavailable(err error) bool {
	switch status := statusOf(err); {
	case status == http.StatusNotImplemented: // it never will be
		return false
	case status >= http.StatusInternalServerError:
		return true
	}
	switch codeOf(err) {
	case "InternalError", "ServiceUnavailable", "RequestTimeout":
		return true
	}
	return isBrokenConnection(err)
}

func isBrokenConnection(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		return true
	}
	_, ok := errors.AsType[ratelimit.QuotaExceededError](err)
	return ok
}

// codeOf returns the S3 error code of err, or "".
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// statusOf returns the HTTP status that err came with, or 0.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return answer.HTTPStatusCode()
	}
	return 0
}
