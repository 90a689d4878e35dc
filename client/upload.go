package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// UploadRequest asks to stage bytes as an object.
type UploadRequest struct {
	ObjectID string // chosen by the caller, one for each object of a grant
	Declaration
	// Body is the bytes. What can be read again, such as an [os.File] or a
	// [bytes.Reader], is read twice, from where it stands to its end: once for its size
	// and digest, unless that is declared, and once to be sent, again after each failure.
	// Anything else is read once: up to a few MiB of it are kept in memory; of more, a
	// body of declared size is streamed, and then not sent again after a failure, and one
	// of unknown size goes through a temporary file.
	Body io.Reader
	// Progress is called after each piece that was handed to the connection, with how
	// many bytes were and how many there are. It begins anew with each attempt.
	Progress func(sent, total int64)
}

// UploadFile is [Capability.Upload] of the file at path, under its own name unless the
// request says otherwise.
func (k *Capability) UploadFile(ctx context.Context, path string, r UploadRequest) (*Sealed, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("upload object %q: %w", r.ObjectID, err)
	}
	defer file.Close()
	r.Body = file
	if r.Filename == "" {
		r.Filename = filepath.Base(path)
	}
	return k.Upload(ctx, r)
}

// Upload stages bytes as an object: it reserves the object, sends the bytes, and seals
// them, so that the object is known to be those bytes. It makes nothing visible. A lost
// answer, an upload URL that has expired, and bytes that an earlier attempt has left in
// place are no failures, and the same Upload may be repeated.
//
// It fails with [ErrStaleFence] like a publish, with [ErrConflict] where the id was used
// for another object, with [ErrObjectMismatch] where the bytes in place are not those of
// Body, with [ErrUploadRefused] where the storage does not take them. After a failure Body
// may still be being read: do not go on using it.
func (k *Capability) Upload(ctx context.Context, r UploadRequest) (*Sealed, error) {
	p, done, err := prepare(ctx, &r)
	if err != nil {
		return nil, fmt.Errorf("upload object %q: %w", r.ObjectID, err)
	}
	defer done()
	sealed, err := k.stage(ctx, r, p)
	if lost := context.Cause(ctx); err != nil && errors.Is(lost, ErrLeaseLost) {
		// That the outcome is unknown does not matter then: nothing can become visible.
		return nil, fmt.Errorf("upload object %q: %w", r.ObjectID, lost)
	}
	return sealed, err
}

// stage delivers the bytes, and has them sealed.
func (k *Capability) stage(ctx context.Context, r UploadRequest, p payload) (*Sealed, error) {
	digest, err := k.deliver(ctx, ReserveRequest{r.ObjectID, r.Declaration}, p)
	if err != nil && (digest == "" || !maybeInPlace(err)) {
		return nil, err
	}
	sealed, sealErr := k.Seal(ctx, r.ObjectID)
	switch {
	case sealErr != nil && err != nil && !errors.Is(sealErr, ErrObjectMismatch):
		return nil, err
	case sealErr != nil:
		return nil, sealErr
	case sealed.SHA256 != digest:
		cause := fmt.Errorf("the bytes in place have SHA-256 %s, not %s", sealed.SHA256, digest)
		return nil, &Error{Op: opName("upload", "object "+r.ObjectID, k.granted.Report), Outcome: NotApplied, kind: ErrObjectMismatch, cause: cause}
	}
	return sealed, nil
}

// freshURLs is how often an upload asks for another URL.
const freshURLs = 3

// deliver reserves an object and sends its bytes, with a fresh URL where one has expired.
// It returns the digest of the bytes, as far as it is known.
func (k *Capability) deliver(ctx context.Context, r ReserveRequest, p payload) (digest string, err error) {
	for n := 0; ; n++ {
		reserved, err := k.Reserve(ctx, r)
		if err != nil {
			return p.sha256, err
		}
		body, err := k.client.transfer(ctx, reserved, p)
		if err == nil || n == freshURLs || !expired(err) || !p.again && !body.untouched() {
			if p.sha256 != "" {
				return p.sha256, err
			}
			return body.digest(), err
		}
	}
}

// expired tells whether the storage has refused the URL. It says so in many words, and the
// clock here may be wrong, so a fresh one is tried.
func expired(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && errors.Is(err, ErrUploadRefused) && refused.Status == http.StatusForbidden
}

// maybeInPlace tells whether the bytes may be in place, for all that err says.
func maybeInPlace(err error) bool {
	var failure *Error
	if !errors.As(err, &failure) || failure.kind == nil {
		return false
	}
	return failure.Outcome == Unknown || failure.Status == http.StatusPreconditionFailed || failure.Code == "object_exists"
}
