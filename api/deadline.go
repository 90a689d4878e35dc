package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/internal/database"
)

// limitTime bounds the work on a request and the writing of its answer. The
// reading of the body is bounded by the server's ReadTimeout, which net/http
// lifts once the body is there.
func (s *Server) limitTime(r route) echo.MiddlewareFunc {
	limit := s.limitWhole
	if r.Streams {
		limit = s.limitPauses
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			return limit(c, r, next)
		}
	}
}

// limitWhole gives the request as a whole the configured time, or the route's
// if that is longer; each of its changes has the configured time. A mutating
// request is not interrupted when its client hangs up: the change would be
// undone or, worse, be made without anybody knowing.
func (s *Server) limitWhole(c echo.Context, r route, next echo.HandlerFunc) error {
	limit := max(r.Limit, s.cfg.RequestTimeout)
	ctx := database.WithLimit(c.Request().Context(), s.cfg.RequestTimeout)
	if r.Mutates && !r.Waits {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	control := http.NewResponseController(c.Response())
	if err := setDeadline(control.SetWriteDeadline, limit+writeSlack); err != nil {
		return err
	}
	c.SetRequest(c.Request().WithContext(ctx))
	return next(c)
}

// untilDraining is ctx, ended as soon as the server begins to shut down: whoever waits asks again elsewhere. It
// must be cancelled.
func (s *Server) untilDraining(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// limitPauses lets a streaming request go on as long as bytes flow. A pause
// longer than the configured time ends its context and its connection.
func (s *Server) limitPauses(c echo.Context, _ route, next echo.HandlerFunc) error {
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	pause := s.cfg.RequestTimeout
	watchdog := time.AfterFunc(pause, func() { cancel(context.DeadlineExceeded) })
	defer watchdog.Stop()

	w := &steadyWriter{
		ResponseWriter: c.Response().Writer,
		control:        http.NewResponseController(c.Response().Writer),
		watchdog:       watchdog,
		pause:          pause,
	}
	if err := setDeadline(w.control.SetWriteDeadline, pause+writeSlack); err != nil {
		return err
	}
	c.Response().Writer = w
	c.SetRequest(c.Request().WithContext(ctx))

	err := next(c)
	if err != nil && ctx.Err() != nil {
		// A reader that was interrupted only says so; the cause says why.
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// steadyWriter moves the time limits on with every write.
type steadyWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	watchdog *time.Timer
	pause    time.Duration
}

// chunk is how much must leave within one pause: a few kilobytes a second are a
// slow client, less is none.
const chunk = 32 << 10

// Write sends p in chunks, each within the longest pause, and allows as long
// again for the next.
func (w *steadyWriter) Write(p []byte) (int, error) {
	var sent int
	for part := range slices.Chunk(p, chunk) {
		if err := setDeadline(w.control.SetWriteDeadline, w.pause); err != nil {
			return sent, err
		}
		w.watchdog.Reset(w.pause)
		n, err := w.ResponseWriter.Write(part)
		sent += n
		if err != nil {
			return sent, err
		}
	}
	w.watchdog.Reset(w.pause)
	return sent, nil
}

// Unwrap lets http.ResponseController reach the connection.
func (w *steadyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// setDeadline sets a deadline d from now, where the connection knows deadlines
// (the recorder of a test does not).
func setDeadline(set func(time.Time) error, d time.Duration) error {
	if err := set(time.Now().Add(d)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("set the connection's deadline: %w", err)
	}
	return nil
}
