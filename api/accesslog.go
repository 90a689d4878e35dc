package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
)

// answerAndLog turns the error of a request into its answer, counts it, and writes its one
// line in the log. The line names the route, never the query, a header or a
// body: those may hold secrets.
func (s *Server) answerAndLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		started := time.Now()
		err := next(c)
		begun := c.Response().Committed
		var p *problem
		if err != nil {
			p = problemFor(c, err)
		}
		if err != nil && !begun {
			p.write(c)
		}
		s.logRequest(c, started, p)
		s.measure(c, started, p)
		if err != nil && begun {
			// The status has been sent, so only a broken connection can tell the
			// client that what it got is not the whole answer.
			panic(http.ErrAbortHandler)
		}
		return nil
	}
}

// logRequest writes the line of one request. p is nil where all went well.
func (s *Server) logRequest(c echo.Context, started time.Time, p *problem) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method),
		slog.String("route", c.Path()),
		slog.Int("status", c.Response().Status),
		slog.Duration("duration", time.Since(started)),
		slog.Int64("bytes", c.Response().Size),
		slog.String("request_id", requestIDOf(c)),
	}
	if report := c.Param("report"); isReportID(report) {
		attrs = append(attrs, slog.String("report", report))
	}
	if key, ok := c.Get(apiKeyKey).(Key); ok {
		attrs = append(attrs, slog.String("key_id", key.ID))
	}
	if p != nil {
		attrs = append(attrs, slog.String("code", p.Code))
	}
	if p != nil && p.cause != nil && p.Status >= http.StatusInternalServerError {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", p.cause.Error()))
	}
	s.log.LogAttrs(c.Request().Context(), level, "request", attrs...)
}

// panicError is a panic of a handler, with where it happened. It is unlisted
// among the errors, so it is answered as 500 and shows in the log alone.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("panic: %v\n%s", e.value, e.stack)
}

// recoverPanics makes an error of a panic, so that it costs one request only.
func recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				err = &panicError{value: v, stack: debug.Stack()}
			}
		}()
		return next(c)
	}
}
