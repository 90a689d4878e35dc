package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
)

// epochView is the present epoch as it is shown.
type epochView struct {
	Epoch    int32     `json:"epoch"`
	Floor    int32     `json:"floor"` // fences of epochs below it are closed
	BeganAt  time.Time `json:"began_at"`
	Reason   string    `json:"reason"`
	Verified bool      `json:"verified"` // the database is the one whose identity was verified
}

func (s *Server) getEpoch(c echo.Context) error {
	e, err := s.cfg.Leases.Epoch(c.Request().Context())
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, epochView(e))
}

// getStatus tells an operator what this instance is and whether something needs a look.
func (s *Server) getStatus(c echo.Context) error {
	ctx := c.Request().Context()
	e, err := s.cfg.Leases.Epoch(ctx)
	if err != nil {
		return err
	}
	runs, err := s.cfg.Collector.Runs(ctx, 0, 1)
	if err != nil {
		return err
	}
	paused, by, err := s.cfg.Collector.PausedSince(ctx)
	if err != nil {
		return err
	}
	frozen, err := s.cfg.Catalog.FrozenReports(ctx)
	if err != nil {
		return err
	}
	status := struct {
		Version  string        `json:"version"`
		Epoch    epochView     `json:"epoch"`
		Checks   []checkResult `json:"checks"`
		LastRun  *runView      `json:"last_gc_run"`
		Paused   *time.Time    `json:"gc_paused_since"`
		Frozen   []string      `json:"frozen"`
		Warnings []string      `json:"warnings"`
	}{
		Version: s.cfg.Version, Epoch: epochView(e), Checks: s.checkAll(ctx), Paused: paused, Frozen: []string{},
		Warnings: slices.Clone(s.cfg.Warnings),
	}
	if !e.Verified {
		status.Warnings = append(status.Warnings, "the database is not the one whose identity was verified: changes are refused")
	}
	if paused != nil {
		status.Warnings = append(status.Warnings, "the collector is paused, by "+by)
	}
	for _, f := range frozen {
		status.Frozen = append(status.Frozen, f.Pattern)
	}
	if len(runs) > 0 {
		last := viewRun(runs[0])
		status.LastRun = &last
		if last.Braked > 0 {
			status.Warnings = append(status.Warnings, "the collector's brake has held objects back: see the last run")
		}
	}
	return writeJSON(c, http.StatusOK, status)
}
