package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// longestWatch is how long one request of a watch waits for a change.
const longestWatch = 30 * time.Second

// Watch waits until a report has a newer version than after, and returns the newest; with
// after 0 it waits for the first. Versions in between are passed over; a withdrawal is a
// version without an object. Where the service is away it asks again until ctx ends. It
// fails with [ErrNotFound] where there is no such report: it comes into being with its
// first lease.
func (c *Client) Watch(ctx context.Context, report string, after int64) (*Publication, error) {
	return c.watch(ctx, report, after, new(string))
}

// Updates yields each version that a report has after the given one, as it becomes
// visible, until ctx ends. Versions that are followed by another at once may be passed
// over. An error ends it; see [Client.Watch].
func (c *Client) Updates(ctx context.Context, report string, after int64) iter.Seq2[*Publication, error] {
	return func(yield func(*Publication, error) bool) {
		tag := ""
		for {
			newest, err := c.watch(ctx, report, after, &tag)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(newest, nil) {
				return
			}
			after = newest.Version
		}
	}
}

// watch is Watch; tag is what the service calls the version that was seen last, "" where
// none was.
func (c *Client) watch(ctx context.Context, report string, after int64, tag *string) (*Publication, error) {
	op := opName("watch", "the newest version", report)
	if err := checkIDs(op, "report", report); err != nil {
		return nil, err
	}
	for failures := 0; ; {
		asked := time.Now()
		newest, err := c.look(ctx, op, report, tag)
		switch {
		case err == nil && newest != nil && newest.Version > after:
			return newest, nil
		case err == nil:
			failures = 0
			// Whatever does not let a request wait is not asked all the time.
			if !pause(ctx, time.Second-time.Since(asked)) {
				return nil, unanswered(ctx, call{op: op}, true, context.Cause(ctx))
			}
		case ctx.Err() != nil || !errors.Is(err, ErrUnavailable):
			return nil, err
		default:
			failures++
			var away *Error
			errors.As(err, &away)
			if !pause(ctx, max(c.backoff(failures), away.RetryAfter)) {
				return nil, err
			}
		}
	}
}

// look asks once for the newest version, waiting for a change of what tag stands for; nil
// if there is none, or it is the same.
func (c *Client) look(ctx context.Context, op, report string, tag *string) (*Publication, error) {
	request := call{
		op: op, method: http.MethodGet, path: []string{"reports", report}, waits: longestWatch,
		query: url.Values{"wait_ms": {strconv.FormatInt(longestWatch.Milliseconds(), 10)}},
	}
	if *tag != "" {
		request.header = http.Header{"If-None-Match": {*tag}}
	}
	newest, got, err := exchange[*Publication](ctx, c, request)
	var refused *Error
	switch {
	case err == nil:
		*tag = got.header.Get("ETag")
		return newest, nil
	case !errors.As(err, &refused):
		return nil, err
	case refused.Status == http.StatusNotModified, refused.Code == "not_published":
		return nil, nil
	case errors.Is(err, ErrWithdrawn):
		withdrawn, err := c.Publication(ctx, report, refused.Version)
		if err == nil { // else the next question has to be told of it again
			*tag = got.header.Get("ETag")
		}
		return withdrawn, err
	}
	return nil, err
}
