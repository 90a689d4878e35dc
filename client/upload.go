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

// UploadFile uploads the file at path to where the reservation says, see [Client.Upload].
func (c *Client) UploadFile(ctx context.Context, r *Reservation, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("upload object %q: %w", r.ObjectID, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("upload object %q: %w", r.ObjectID, err)
	}
	return c.Upload(ctx, r, file, info.Size())
}

// Upload streams size bytes of body to where the reservation says, with the headers that
// were signed. A body that can be read again, such as an [os.File] or a [bytes.Reader],
// is sent again after a failure, from where it stood; any other is sent once. After a
// failed upload the body may still be being read: do not go on using it.
//
// The storage writes the bytes of a key once, so a repeat may find the bytes of an
// earlier attempt in place. Where the reservation declared the digest that is a success,
// since sealing checks the bytes; else it is [ErrConflict], and the caller may compare
// what [Client.Seal] returns.
//
// It fails with [ErrUploadRefused] where the storage does not take the bytes, for one
// because the URL has expired: the same Reserve gets a fresh one.
func (c *Client) Upload(ctx context.Context, r *Reservation, body io.Reader, size int64) error {
	request := call{op: opName("upload", "object "+r.ObjectID, r.Report), mutating: true}
	open, again := rereader(body, size)
	return c.persist(ctx, request, func(ctx context.Context) *Error {
		content := &watchedBody{Reader: open()}
		failure := c.put(ctx, request, r.Upload, content, size)
		if failure == nil {
			return nil
		}
		if failure.Status == http.StatusPreconditionFailed {
			if r.declared.SHA256 != "" {
				return nil
			}
			failure.kind = ErrConflict
		}
		if broken := content.broken.Load(); broken != nil {
			failure.kind, failure.cause, failure.final = nil, *broken, true
		}
		failure.final = failure.final || !again
		return failure
	})
}

// continueSize is from how many bytes on an upload asks first whether they are wanted, as
// a refusal is lost where the storage cuts the connection in the middle of a body.
const continueSize = 1 << 20

// put makes one attempt at an upload.
func (c *Client) put(ctx context.Context, request call, to UploadURL, body io.Reader, size int64) *Error {
	var connected atomic.Bool
	message, err := http.NewRequestWithContext(traceConnection(ctx, &connected), to.Method, to.URL, body)
	if err != nil {
		return invalid(request.op, "the upload URL cannot be used")
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
		return unanswered(ctx, request, connected.Load(), err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 200 && response.StatusCode <= 299 {
		return nil
	}
	return storageRefusal(request, response)
}

// rereader returns what opens the bytes of body from where it stands now, and whether
// that can be done more than once.
func rereader(body io.Reader, size int64) (open func() io.Reader, again bool) {
	type rereadable interface {
		io.ReaderAt
		io.Seeker
	}
	if source, ok := body.(rereadable); ok {
		if start, err := source.Seek(0, io.SeekCurrent); err == nil {
			return func() io.Reader { return io.NewSectionReader(source, start, size) }, true
		}
	}
	return func() io.Reader { return body }, false
}

// watchedBody notes the error with which a body could not be read, since the transport
// reports it as if the connection had failed.
type watchedBody struct {
	io.Reader
	broken atomic.Pointer[error]
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.broken.Store(&err)
	}
	return n, err
}
