package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"sync"
)

// What the service allows of parts.
const (
	minPartSize = 5 << 20
	maxParts    = 10_000
)

// partSize is how many bytes the parts of size bytes have.
func (c *Client) partSize(size int64) int64 {
	return max(c.config.PartSize, minPartSize, (size+maxParts-1)/maxParts)
}

// partsUpload is one upload in parts.
type partsUpload struct {
	k        *Capability
	op       string
	payload  payload
	partSize int64
	urls     *partURLs
	progress *partsProgress
	hash     hash.Hash // of the bytes as they were read; nil where the digest was declared
	etags    []string  // of parts 1, 2, …; each is written by who sends the part
}

// stageParts delivers the bytes of a payload in parts, and has them sealed.
func (k *Capability) stageParts(ctx context.Context, r ReserveRequest, p payload) (*Sealed, error) {
	partSize := k.client.partSize(p.size)
	count := int((p.size + partSize - 1) / partSize)
	r.Size = &p.size
	u := &partsUpload{
		k: k, op: opName("upload", "object "+r.ObjectID, k.granted.Report), payload: p, partSize: partSize,
		urls:     &partURLs{k: k, request: r, partSize: partSize, count: count, pages: map[int]*urlPage{}},
		progress: &partsProgress{report: p.progress, total: p.size, reached: make([]int64, count)},
		etags:    make([]string, count),
	}
	if p.sha256 == "" {
		u.hash = sha256.New()
	}
	if _, _, err := u.urls.of(ctx, 1, nil); err != nil {
		return u.sealedBefore(ctx, err)
	}
	if err := u.sendAll(ctx); err != nil {
		k.giveUp(ctx, r.ObjectID)
		return nil, err
	}
	sealed, err := k.seal(ctx, r.ObjectID, sealWait(p.size), u.etags...)
	if err == nil {
		err = u.compare(sealed)
	}
	if err != nil && !errors.Is(err, ErrOutcomeUnknown) {
		k.giveUp(ctx, r.ObjectID)
	}
	if err != nil {
		return nil, err
	}
	return sealed, nil
}

// sealedBefore makes a success of a refusal to reserve, where that is because the same
// bytes were sealed already.
func (u *partsUpload) sealedBefore(ctx context.Context, refusal error) (*Sealed, error) {
	var failure *Error
	known := u.hash == nil || u.payload.at != nil
	if !errors.As(refusal, &failure) || failure.Code != "object_exists" || !known {
		return nil, refusal
	}
	if u.hash != nil {
		if err := u.hashAll(ctx); err != nil {
			return nil, u.failed(err)
		}
	}
	sealed, err := u.k.seal(ctx, u.urls.request.ObjectID, sealWait(u.payload.size))
	if err == nil {
		err = u.compare(sealed)
	}
	if err != nil {
		return nil, err
	}
	return sealed, nil
}

// sendAll sends all parts, several at once, and returns when nothing is under way any
// more. The first failure ends the others.
func (u *partsUpload) sendAll(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	if u.hash != nil && u.payload.at != nil {
		// The parts are read out of order: so the bytes are hashed beside the sending.
		running.Go(func() {
			if err := u.hashAll(ctx); err != nil {
				fail(u.failed(err))
			}
		})
	}
	u.startAll(ctx, &running, fail)
	running.Wait()
	var failure *Error
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.As(cause, &failure):
		return cause
	default:
		return u.failed(cause)
	}
}

// startAll has parts sent one after the other, as places come free. A place has the
// buffer for one part of a body that can be read only once.
func (u *partsUpload) startAll(ctx context.Context, running *sync.WaitGroup, fail func(error)) {
	places := make(chan []byte, u.k.client.config.PartsAtOnce)
	for range cap(places) {
		places <- nil
	}
	var body io.Reader
	if u.payload.at == nil {
		body = untilDone(ctx, u.payload.open())
	}
	for number := 1; number <= len(u.etags); number++ {
		var place []byte
		select {
		case place = <-places:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return
		}
		size := min(u.partSize, u.payload.size-int64(number-1)*u.partSize)
		var content io.ReaderAt
		if body == nil {
			content = io.NewSectionReader(u.payload.at, int64(number-1)*u.partSize, size)
		} else {
			if place == nil {
				place = make([]byte, size) // none is larger later on
			}
			if err := u.readPart(body, number, place[:size]); err != nil {
				fail(u.failed(err))
				return
			}
			content = bytes.NewReader(place[:size])
		}
		running.Go(func() {
			if err := u.send(ctx, number, content, size); err != nil {
				fail(err)
			}
			places <- place
		})
	}
}

// readPart reads the next part of a body, and after the last one sees that nothing follows.
func (u *partsUpload) readPart(body io.Reader, number int, into []byte) error {
	n, err := io.ReadFull(body, into)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the body has %d bytes, declared were %d", ErrObjectMismatch, int64(number-1)*u.partSize+int64(n), u.payload.size)
	}
	if err != nil {
		return err
	}
	if u.hash != nil {
		u.hash.Write(into)
	}
	if number < len(u.etags) {
		return nil
	}
	switch n, err := io.ReadFull(body, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w: the body has more than the %d bytes that were declared", ErrObjectMismatch, u.payload.size)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// hashAll reads all bytes of a body that can be read at any place.
func (u *partsUpload) hashAll(ctx context.Context) error {
	n, err := io.Copy(u.hash, untilDone(ctx, io.NewSectionReader(u.payload.at, 0, u.payload.size)))
	if err == nil && n != u.payload.size {
		err = fmt.Errorf("%w: the body has %d bytes, and had %d", ErrObjectMismatch, n, u.payload.size)
	}
	return err
}

// compare tells whether what was sealed is what was read.
func (u *partsUpload) compare(sealed *Sealed) error {
	digest := strings.ToLower(u.payload.sha256)
	if u.hash != nil {
		digest = hex.EncodeToString(u.hash.Sum(nil))
	}
	if sealed.SHA256 == digest {
		return nil
	}
	cause := fmt.Errorf("%w: the bytes in place have SHA-256 %s, not %s", ErrDigestMismatch, sealed.SHA256, digest)
	return &Error{Op: u.op, Outcome: NotApplied, kind: ErrObjectMismatch, cause: cause}
}

// failed makes the error of an upload that came to nothing on this side.
func (u *partsUpload) failed(err error) *Error {
	return &Error{Op: u.op, Outcome: NotApplied, final: true, cause: err}
}

// giveUp discards an object whose upload has failed, as its parts are of no use any more,
// unless it was published or may have been.
func (k *Capability) giveUp(ctx context.Context, objectID string) {
	if !slices.Contains(k.leftovers(), objectID) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_ = k.Discard(ctx, objectID) // else it is collected after its retention
}
