package api

import (
	"context"
	"errors"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/internal/metrics"
)

// metricsPage makes the handler that answers scrapes.
func (s *Server) metricsPage() echo.HandlerFunc {
	return echo.WrapHandler(s.cfg.Metrics.Handler(s.log))
}

// noteResult keeps what the answer says, for those who count it.
func noteResult(c echo.Context, result string) { c.Set(resultKey, result) }

// measure counts a request that was answered. p is nil where all went well.
func (s *Server) measure(c echo.Context, started time.Time, p *problem) {
	r, _ := c.Get(routeKey).(route)
	result, _ := c.Get(resultKey).(string)
	request := metrics.Request{
		Route: r.Path, Method: c.Request().Method, Status: c.Response().Status, Took: time.Since(started),
		Operation: r.Counted, Result: result,
	}
	if p != nil {
		request.Code = countedCode(p)
	}
	s.cfg.Metrics.Request(request)
	// An operator who bars a fence that was never granted has done no work under it.
	if p != nil && r.Role == RoleWorker && (p.Code == "stale_fence" || p.Code == "fence_not_granted") {
		reason, _ := p.Members["reason"].(string)
		s.cfg.Metrics.FenceRefused(p.Code, reason)
	}
}

// countedCode is the code of a problem, but for a request that was not to go on: its client hung up, or the server
// is being shut down.
func countedCode(p *problem) string {
	if errors.Is(p.cause, context.Canceled) && !errors.Is(p.cause, context.DeadlineExceeded) {
		return metrics.Interrupted
	}
	return p.Code
}
