package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// maxAnswer bounds how much of a JSON answer is read, in bytes.
const maxAnswer = 8 << 20

// call is one request of the service's interface.
type call struct {
	op       string // for errors: what is being done
	method   string
	path     []string // below /v1
	query    url.Values
	header   http.Header
	body     any // encoded as JSON; nil: no body
	mutating bool
	waits    time.Duration // how long the service is asked to wait
	patience time.Duration // if not 0: no attempt lasts longer

	idempotencyKey string // for errors: under which the caller may repeat it
}

// answer is what came back for a call.
type answer struct {
	status int
	header http.Header
	sentAt instant // just before the attempt that was answered was sent
}

// exchange sends a call, repeats it where that makes sense, and decodes the JSON of the
// answer into a T.
func exchange[T any](ctx context.Context, c *Client, request call) (T, answer, error) {
	var value T
	var got answer
	var payload []byte
	if request.body != nil {
		encoded, err := json.Marshal(request.body)
		if err != nil {
			return value, got, invalid(request.op, "%s", err)
		}
		payload = encoded
	}
	err := c.persist(ctx, request, func(ctx context.Context) *Error {
		timeout := c.config.AttemptTimeout + request.waits
		if request.patience > 0 {
			timeout = min(timeout, request.patience)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		got = answer{sentAt: c.now()}
		response, failure := c.send(ctx, request, payload)
		if failure != nil {
			return failure
		}
		defer response.Body.Close()
		got.status, got.header = response.StatusCode, response.Header

		body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		if err != nil {
			return unanswered(ctx, request, true, fmt.Errorf("read the answer: %w", err))
		}
		if response.StatusCode < 200 || response.StatusCode > 299 {
			return refusal(request, response, body)
		}
		value = *new(T)
		if err := json.Unmarshal(body, &value); err != nil {
			return unanswered(ctx, request, true, fmt.Errorf("answer with status %d: %w", response.StatusCode, err))
		}
		return nil
	})
	return value, got, err
}

// send makes one attempt. The caller closes the response's body.
func (c *Client) send(ctx context.Context, request call, payload []byte) (*http.Response, *Error) {
	if c.base == nil {
		return nil, invalid(request.op, "the service's URL is not an http or https address")
	}
	var connected atomic.Bool
	ctx = traceConnection(ctx, &connected)
	message, err := http.NewRequestWithContext(ctx, request.method, c.address(request.path, request.query), bytes.NewReader(payload))
	if err != nil {
		return nil, invalid(request.op, "%s", err)
	}
	if request.header != nil {
		message.Header = request.header.Clone()
	}
	if request.body != nil {
		message.Header.Set("Content-Type", "application/json")
	}
	message.Header.Set("Authorization", "Bearer "+c.config.Key)
	message.Header.Set("User-Agent", c.config.UserAgent)
	response, err := c.http.Do(message)
	if err != nil {
		return nil, unanswered(ctx, request, connected.Load(), err)
	}
	return response, nil
}

// traceConnection notes in connected whether a request got a connection, after which
// it may have been sent.
func traceConnection(ctx context.Context, connected *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
}
