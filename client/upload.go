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
	// [bytes.Reader], is read from where it stands to its end: twice, once for its digest,
	// unless that is declared, and once to be sent, again after each failure. In parts
	// both happen at the same time, from several places at once.
	// Anything else is read once: up to a few MiB of it are kept in memory; of more, a
	// body of declared size is streamed, and one of unknown size goes through a temporary
	// file. What is streamed as a whole is not sent again after a failure; of what is
	// streamed in parts each part is, from memory.
	Body io.Reader
	// Progress is called after each piece that was handed to the connection, with how
	// many bytes were and how many there are. It begins anew with each attempt; in parts
	// it sums over them, and only grows. It is called by one goroutine at a time.
	Progress func(sent, total int64)
}

// UploadFile is [Capability.Upload] of the file at path, under its own name unless the
// request says otherwise.
func (k *Capability) UploadFile(ctx context.Context, path string, r UploadRequest) (*Sealed, error) {
	// What is no regular file, such as a pipe, may hang, or have no end: it is for Upload.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, invalid(opName("upload", "object "+r.ObjectID, k.Report()), "%s is no regular file", path)
	}
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
// More than [Config.PartsAbove] bytes are sent in parts, several at once, unless the
// service knows of no parts. If that fails the object is discarded, since its parts are of
// no use any more, unless it may be sealed or published: to try again, choose another
// object id. Upload returns once none of its parts is under way, and a Read of Body that
// hangs holds it up.
//
// It fails with [ErrStaleFence] like a publish, with [ErrConflict] where the id was used
// for another object, with [ErrObjectMismatch] where the bytes in place are not those of
// Body, in parts with [ErrDigestMismatch] too, with [ErrUploadRefused] where the storage
// does not take them. After a failure Body may still be being read: do not go on using it.
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

// stage delivers the bytes, in parts or as a whole, and has them sealed.
func (k *Capability) stage(ctx context.Context, r UploadRequest, p payload) (*Sealed, error) {
	if p.size > k.client.config.PartsAbove {
		sealed, err := k.stageParts(ctx, ReserveRequest{r.ObjectID, r.Declaration}, p)
		if !withoutParts(err) {
			return sealed, err
		}
	}
	p, err := p.digested(ctx)
	if err != nil {
		return nil, fmt.Errorf("upload object %q: %w", r.ObjectID, err)
	}
	r.SHA256 = p.sha256
	return k.stageWhole(ctx, r, p)
}

// stageWhole delivers the bytes in one request, and has them sealed.
func (k *Capability) stageWhole(ctx context.Context, r UploadRequest, p payload) (*Sealed, error) {
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
