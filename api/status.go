package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
)

// getStatus tells an operator what this instance is and whether something needs a look.
func (s *Server) getStatus(c echo.Context) error {
	ctx := c.Request().Context()
	e, err := s.cfg.Leases.Epoch(ctx)
	if err != nil {
		return err
	}
	last, standing, collectorWarnings, err := s.collectorStatus(ctx)
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
	own, err := s.cfg.Catalog.HasDefaults(ctx)
	if err != nil {
		return err
	}
	status := struct {
		Version   string        `json:"version"`
		Epoch     epochView     `json:"epoch"`
		Checks    []checkResult `json:"checks"`
		LastRun   *runView      `json:"last_gc_run"`
		Paused    *time.Time    `json:"gc_paused_since"`
		Collector collectorView `json:"collector"`
		Frozen    []string      `json:"frozen"`
		Warnings  []string      `json:"warnings"`
	}{
		Version: s.cfg.Version, Epoch: epochView(e), Checks: s.checkAll(ctx), LastRun: last, Paused: paused,
		Collector: standing, Frozen: []string{},
		Warnings: slices.Clone(s.cfg.Warnings),
	}
	if !e.Verified {
		status.Warnings = append(status.Warnings, "the database is not the one whose identity was verified: changes are refused")
	}
	if !own {
		status.Warnings = append(status.Warnings, "the defaults of the reports' settings are those of an instance that was started later, with others: start all with the same")
	}
	if paused != nil {
		status.Warnings = append(status.Warnings, "the collector is paused, by "+by)
	}
	for _, f := range frozen {
		if !keyOf(c).Pattern.Contains(Pattern(f.Pattern)) {
			continue // a key learns nothing of reports that are not its own
		}
		status.Frozen = append(status.Frozen, f.Pattern)
		status.Warnings = append(status.Warnings, "reports are frozen: "+f.Pattern+", by "+f.FrozenBy)
	}
	status.Warnings = append(status.Warnings, collectorWarnings...)
	return writeJSON(c, http.StatusOK, status)
}
