package client

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// stall ends a transfer of which nothing has moved for too long: a peer that goes silent
// would hold it up for ever.
type stall struct {
	after time.Duration
	timer *time.Timer
	ended atomic.Bool
}

// watch returns a context that ends when the transfer has stalled. The caller calls stop.
func watch(ctx context.Context, after time.Duration) (_ context.Context, s *stall, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	s = &stall{after: after}
	s.timer = time.AfterFunc(after, func() {
		s.ended.Store(true)
		cancel()
	})
	return ctx, s, func() {
		s.timer.Stop()
		cancel()
	}
}

// moved says that something has.
func (s *stall) moved() {
	if !s.ended.Load() {
		s.timer.Reset(s.after)
	}
}

// reason is err, or that the transfer has stalled, if that is what ended it.
func (s *stall) reason(err error) error {
	if err != nil && s.ended.Load() {
		return fmt.Errorf("nothing has moved for %v", s.after)
	}
	return err
}

// movingReader is a body whose reading shows that a transfer moves.
type movingReader struct {
	io.Reader
	stall *stall
}

// Read reads on.
func (m movingReader) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.stall.moved()
	return n, err
}
