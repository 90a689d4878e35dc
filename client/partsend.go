package client

import (
	"context"
	"errors"
	"io"
	"sync"
)

// send sends one part until it is in place, with a fresh URL where one has expired. To
// send a part again changes nothing, so a lost answer needs no more care.
func (u *partsUpload) send(ctx context.Context, number int, content io.ReaderAt, size int64) error {
	var page *urlPage
	for n := 0; ; n++ {
		to, from, err := u.urls.of(ctx, number, page)
		if err != nil {
			return err
		}
		page = from
		err = u.sendTo(ctx, to, number, content, size)
		if err == nil || n == freshURLs || !expired(err) && !u.urls.over(page) {
			return err
		}
	}
}

// sendTo sends one part to a URL.
func (u *partsUpload) sendTo(ctx context.Context, to UploadURL, number int, content io.ReaderAt, size int64) error {
	c := u.k.client
	request := call{op: u.op, mutating: true}
	err := c.persist(ctx, request, func(ctx context.Context) *Error {
		body := &partBody{
			source: io.NewSectionReader(content, 0, size), left: size,
			report: func(sent int64) { u.progress.reach(number, sent) },
		}
		header, failure := c.put(ctx, request, to, body, size)
		if broken := body.stop(); failure != nil && broken != nil {
			failure.kind, failure.cause, failure.final = nil, broken, true
		}
		if failure != nil {
			return failure
		}
		if u.etags[number-1] = header.Get("ETag"); u.etags[number-1] == "" {
			return &Error{Op: u.op, Detail: "the storage names no ETag of the part", kind: ErrUploadRefused, final: true}
		}
		u.progress.reach(number, size)
		return nil
	})
	var failure *Error
	if errors.As(err, &failure) {
		failure.Outcome = NotApplied // whether a part arrived is no matter: it is no object
	}
	return err
}

// partBody is a part on its way in one attempt. The transport may go on reading after it
// has answered: once stop has returned it reads nothing any more, so that the buffer
// behind it can be filled anew.
type partBody struct {
	mu      sync.Mutex // held while the source is read
	source  io.Reader
	left    int64
	sent    int64
	report  func(sent int64)
	stopped bool
	broken  error // with which the source could not be read
}

// Read implements [io.Reader].
func (b *partBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return 0, errStopped
	}
	n, err := b.source.Read(p)
	b.left -= int64(n)
	b.sent += int64(n)
	if errors.Is(err, io.EOF) && b.left > 0 {
		err = io.ErrUnexpectedEOF // a file that has become shorter
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.broken = err
	}
	if n > 0 {
		b.report(b.sent)
	}
	return n, err
}

// stop has nothing read any more, and returns the error with which the source broke.
func (b *partBody) stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.broken
}

// partsProgress adds up how far parts have come. A part that is sent again counts only
// once it is further than before.
type partsProgress struct {
	report func(sent, total int64) // may be nil
	total  int64

	mu      sync.Mutex // also while report runs, so that it sees the sums in their order
	sum     int64
	reached []int64 // of parts 1, 2, …
}

func (p *partsProgress) reach(number int, sent int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	more := sent - p.reached[number-1]
	if more <= 0 {
		return
	}
	p.reached[number-1] = sent
	p.sum += more
	if p.report != nil {
		p.report(p.sum, p.total)
	}
}
