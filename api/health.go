package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// Check is one thing that must work before the service can.
type Check struct {
	// Name is shown to everybody, for instance `database`.
	Name string
	// Works returns nil if it does. It is asked at every /readyz, so it must be
	// cheap; its error is logged and never shown.
	Works func(ctx context.Context) error
}

// checkTimeout is as long as a probe usually waits.
const checkTimeout = 3 * time.Second

// checkResult is a check as /readyz shows it.
type checkResult struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, failing or draining
}

// livez says that the process runs, and asks nobody else: restarting it would
// not mend a database.
func (s *Server) livez(c echo.Context) error {
	return writeJSON(c, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether requests should be sent here, and if not, why not.
func (s *Server) readyz(c echo.Context) error {
	results := s.checkAll(c.Request().Context())
	for _, r := range results {
		if r.Status != "ok" {
			return unavailable("The service is not ready.").with("checks", results)
		}
	}
	return writeJSON(c, http.StatusOK, struct {
		Status string        `json:"status"`
		Checks []checkResult `json:"checks"`
	}{Status: "ready", Checks: results})
}

// checkAll runs the checks side by side; the process itself is the first.
func (s *Server) checkAll(ctx context.Context) []checkResult {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()

	results := make([]checkResult, 1+len(s.cfg.Ready))
	results[0] = checkResult{Name: "process", Status: "ok"}
	select {
	case <-s.draining:
		results[0].Status = "draining"
	default:
	}
	var checks sync.WaitGroup
	for i, check := range s.cfg.Ready {
		checks.Go(func() {
			results[1+i] = checkResult{Name: check.Name, Status: "ok"}
			if err := check.Works(ctx); err != nil {
				results[1+i].Status = "failing"
				s.log.WarnContext(ctx, "not ready", "check", check.Name, "error", err)
			}
		})
	}
	checks.Wait()
	return results
}
