package client

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"
	"sync/atomic"
)

// sentBody is a payload on its way in one attempt. It notes the error with which its
// source could not be read, since the transport reports it as if the connection had
// failed.
type sentBody struct {
	source   io.Reader
	size     int64
	progress func(sent, total int64)
	broken   atomic.Pointer[error]

	mu      sync.Mutex // the transport may still read after it has answered
	stopped bool
	touched bool // something of the source may have been read
	sent    int64
	hash    hash.Hash // nil where the digest is known
}

// body begins to send the payload.
func (p payload) body() *sentBody {
	b := &sentBody{source: p.open(), size: p.size, progress: p.progress}
	if p.sha256 == "" {
		b.hash = sha256.New()
	}
	return b
}

// errStopped ends reading on behalf of an attempt that is over.
var errStopped = errors.New("the attempt is over")

func (b *sentBody) Read(p []byte) (int, error) {
	if !b.mayRead() {
		return 0, errStopped
	}
	n, err := b.source.Read(p)
	if err != nil && err != io.EOF {
		b.broken.Store(&err)
	}
	return n, b.count(p[:n], err)
}

// mayRead tells whether the attempt goes on, and notes that the source is read then.
func (b *sentBody) mayRead() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touched = b.touched || !b.stopped
	return !b.stopped
}

// count notes what was read, unless the attempt is over.
func (b *sentBody) count(read []byte, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return errStopped
	}
	b.sent += int64(len(read))
	if b.hash != nil {
		b.hash.Write(read)
	}
	if b.progress != nil && len(read) > 0 {
		b.progress(b.sent, b.size)
	}
	return err
}

// stop has nothing read or counted any more.
func (b *sentBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
}

// digest is the SHA-256, in hex, of what was read; "" unless that was all of it.
func (b *sentBody) digest() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hash == nil || b.sent != b.size {
		return ""
	}
	return hex.EncodeToString(b.hash.Sum(nil))
}

// untouched tells whether nothing of the source was or will be read in this attempt, so
// that all of it can still be sent.
func (b *sentBody) untouched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped && !b.touched
}
