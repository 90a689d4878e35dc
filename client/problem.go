package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// problem is an RFC 9457 problem document with the members that the service adds.
type problem struct {
	Title        string          `json:"title"`
	Detail       string          `json:"detail"`
	Code         string          `json:"code"`
	Outcome      Outcome         `json:"outcome"`
	Reason       string          `json:"reason"`
	Presented    string          `json:"presented"`
	Highest      string          `json:"highest"`
	Granted      string          `json:"granted"`
	Expected     json.RawMessage `json:"expected"`
	Actual       json.RawMessage `json:"actual"`
	Holder       string          `json:"holder"`
	Field        string          `json:"field"`
	Version      int64           `json:"version"`
	RetryAfterMS int64           `json:"retry_after_ms"`
}

// refusal makes the error of an answer that is not a success. An answer that is not the
// service's own, such as a proxy's 502, says nothing about a change that was asked for.
func refusal(c call, response *http.Response, body []byte) *Error {
	e := &Error{
		Op: c.op, IdempotencyKey: c.idempotencyKey,
		Status:     response.StatusCode,
		RequestID:  response.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(response.Header.Get("Retry-After")),
	}
	var p problem
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if mediaType != "application/problem+json" || json.Unmarshal(body, &p) != nil || p.Code == "" {
		e.kind = statusKind(e.Status)
		e.Detail = "answered " + http.StatusText(response.StatusCode) + ", but not by the service"
		if c.mutating {
			e.Outcome = Unknown
		}
		return e
	}
	e.kind = codeKind(p.Code)
	e.Code, e.Detail, e.Outcome, e.Reason = p.Code, p.Detail, p.Outcome, p.Reason
	if e.Detail == "" {
		e.Detail = p.Title
	}
	// A fence that cannot be read is no reason to lose the rest of the answer.
	e.Presented, _ = ParseFence(p.Presented)
	e.Highest, _ = ParseFence(p.Highest)
	e.Granted, _ = ParseFence(p.Granted)
	e.Expected, e.Actual = p.Expected, p.Actual
	e.Holder, e.Field, e.Version = p.Holder, p.Field, p.Version
	if p.RetryAfterMS > 0 {
		e.RetryAfter = time.Duration(p.RetryAfterMS) * time.Millisecond
	}
	if c.mutating && e.Outcome != NotApplied && (e.Outcome == Unknown || e.Status >= 500) {
		e.Outcome = Unknown // what the service does not vouch for is not known
	} else if c.mutating {
		e.Outcome = NotApplied
	}
	return e
}

// unanswered makes the error of an attempt that got no answer, or not all of it. If the
// request never had a connection, nothing of it can have arrived. Where ctx has ended, so
// has the caller's interest, whatever cause the transport names for it.
func unanswered(ctx context.Context, c call, connected bool, err error) *Error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the rest is the address, which may be a presigned secret
	}
	if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
		err = cause // however it reached this context, a time that was over is no wish of the caller's
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause) // such as the loss of a lease
	}
	var certificate *tls.CertificateVerificationError
	e := &Error{
		Op: c.op, IdempotencyKey: c.idempotencyKey, kind: ErrUnavailable, cause: err,
		final: errors.As(err, &certificate),
	}
	if errors.Is(err, context.Canceled) {
		e.kind, e.final = nil, true // the caller's own wish says nothing about the service
	}
	switch {
	case !c.mutating:
	case connected:
		e.Outcome = Unknown
	default:
		e.Outcome = NotApplied
	}
	return e
}

// invalid makes the error of a request that is not worth sending.
func invalid(op, format string, args ...any) *Error {
	return &Error{
		Op: op, Code: "invalid_request", Detail: fmt.Sprintf(format, args...), Outcome: NotApplied,
		kind: ErrInvalidRequest, final: true,
	}
}

// retryAfter reads a Retry-After header: seconds, or a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// storageRefusal makes the error of an upload that the storage did not take. S3 servers
// explain themselves in XML.
func storageRefusal(c call, response *http.Response) *Error {
	e := &Error{Op: c.op, Status: response.StatusCode, Outcome: NotApplied, kind: ErrUploadRefused}
	if response.StatusCode >= 500 {
		e.Outcome, e.kind = Unknown, ErrUnavailable
	}
	var explanation struct{ Code, Message string }
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // only for people: half of it will do
	if xml.Unmarshal(body, &explanation) == nil && explanation.Code != "" {
		e.Detail = "the storage answered " + explanation.Code + ": " + explanation.Message
	} else {
		e.Detail = "the storage answered " + http.StatusText(response.StatusCode)
	}
	e.RetryAfter = retryAfter(response.Header.Get("Retry-After"))
	return e
}
