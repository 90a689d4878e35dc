package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// SendFile sends the file at path to where the reservation says, see [Client.Send].
func (c *Client) SendFile(ctx context.Context, r *Reservation, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("upload object %q: %w", r.ObjectID, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("upload object %q: %w", r.ObjectID, err)
	}
	return c.Send(ctx, r, file, info.Size())
}

// Send streams size bytes of body to where the reservation says, with the headers that
// were signed; [Capability.Upload] does more of what an upload takes. A body that can be
// read again, such as an [os.File] or a [bytes.Reader], is sent again after a failure,
// from where it stood; any other is sent once. After a failed upload the body may still be
// being read: do not go on using it.
//
// The storage writes the bytes of a key once, so a repeat may find the bytes of an
// earlier attempt in place. Where the reservation declared the digest that is a success,
// since sealing checks the bytes; else it is [ErrConflict], and the caller may compare
// what [Capability.Seal] returns.
//
// It fails with [ErrUploadRefused] where the storage does not take the bytes, for one
// because the URL has expired: the same Reserve gets a fresh one.
func (c *Client) Send(ctx context.Context, r *Reservation, body io.Reader, size int64) error {
	p := payload{size: size, open: func() io.Reader { return body }}
	if source, start, ok := rereadable(body); ok {
		p.open, p.again = func() io.Reader { return io.NewSectionReader(source, start, size) }, true
	}
	_, err := c.transfer(ctx, r, p)
	return err
}

// payload is the bytes of one upload.
type payload struct {
	open     func() io.Reader
	again    bool // open may be called more than once
	size     int64
	sha256   string // in hex; "" if it is known only once they were read
	progress func(sent, total int64)
	at       io.ReaderAt // the bytes, where they can be read at any place; else nil
}

// transfer sends a payload to where a reservation says, and returns the body of the last
// attempt, which knows how far it was read.
func (c *Client) transfer(ctx context.Context, r *Reservation, p payload) (*sentBody, error) {
	request := call{op: opName("upload", "object "+r.ObjectID, r.Report), mutating: true}
	var body *sentBody
	err := c.persist(ctx, request, func(ctx context.Context) *Error {
		body = p.body()
		_, failure := c.put(ctx, request, r.Upload, body, p.size)
		body.stop()
		if failure == nil {
			return nil
		}
		if failure.Status == http.StatusPreconditionFailed {
			if r.declared.SHA256 != "" {
				return nil
			}
			failure.kind = ErrConflict
		}
		if broken := body.broken.Load(); broken != nil {
			failure.kind, failure.cause, failure.final = nil, *broken, true
		}
		failure.final = failure.final || !p.again && !body.untouched()
		return failure
	})
	return body, err
}

// continueSize is from how many bytes on an upload asks first whether they are wanted, as
// a refusal is lost where the storage cuts the connection in the middle of a body.
const continueSize = 1 << 20

// put makes one attempt at an upload, and returns the header of the storage's answer.
func (c *Client) put(ctx context.Context, request call, to UploadURL, body io.Reader, size int64) (http.Header, *Error) {
	var connected atomic.Bool
	moving, stalled, stop := watch(ctx, c.config.StallTimeout)
	defer stop()
	body = movingReader{body, stalled}
	message, err := http.NewRequestWithContext(traceConnection(moving, &connected), to.Method, to.URL, body)
	if err != nil {
		return nil, invalid(request.op, "the upload URL cannot be used")
	}
	for name, value := range to.Headers {
		switch strings.ToLower(name) {
		case "host":
			message.Host = value
		case "content-length": // follows from the size
		default:
			message.Header.Set(name, value)
		}
	}
	message.ContentLength = size
	if size == 0 {
		message.Body = http.NoBody // a body of length 0 would be sent in chunks
	}
	if size >= continueSize {
		message.Header.Set("Expect", "100-continue")
	}
	response, err := c.http.Do(message)
	if err != nil {
		return nil, unanswered(ctx, request, connected.Load(), stalled.reason(err))
	}
	defer response.Body.Close()
	if response.StatusCode >= 200 && response.StatusCode <= 299 {
		return response.Header, nil
	}
	return nil, storageRefusal(request, response)
}

// rereader is what can be read more than once.
type rereader interface {
	io.ReaderAt
	io.Seeker
}

// rereadable returns body as what can be read more than once, and where it stands, if it
// is that.
func rereadable(body io.Reader) (_ rereader, start int64, ok bool) {
	source, ok := body.(rereader)
	if !ok {
		return nil, 0, false
	}
	start, err := source.Seek(0, io.SeekCurrent)
	return source, start, err == nil
}
