package api

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/verify"
)

// frozenUnder are the freezes that a key may know of: it learns nothing of reports that are not its own.
func frozenUnder(key Key, frozen []catalog.Frozen) []catalog.Frozen {
	return slices.DeleteFunc(frozen, func(f catalog.Frozen) bool { return !key.Pattern.Contains(Pattern(f.Pattern)) })
}

// verifierWarnings says what verifications have found that should be looked at.
func verifierWarnings(s verify.Situation) []string {
	if s.Faults == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d objects that are shown are not in the storage as they were published: see /v1/verifications", s.Faults)}
}

// getStatus tells an operator what this instance is and whether something needs a look.
func (s *Server) getStatus(c echo.Context) error {
	ctx := c.Request().Context()
	e, err := s.cfg.Leases.Epoch(ctx)
	if err != nil {
		return err
	}
	last, standing, collectorWarnings, err := s.collectorStatus(ctx, keyOf(c))
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
	verifying, err := s.cfg.Verifier.Situation(ctx)
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
		Verify    verifyingView `json:"verify"`
		Frozen    []string      `json:"frozen"`
		Warnings  []string      `json:"warnings"`
	}{
		Version: s.cfg.Version, Epoch: epochView(e), Checks: s.checkAll(ctx), LastRun: last, Paused: paused,
		Collector: standing, Verify: verifyingView(verifying), Frozen: []string{},
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
	for _, f := range frozenUnder(keyOf(c), frozen) {
		status.Frozen = append(status.Frozen, f.Pattern)
		status.Warnings = append(status.Warnings, "reports are frozen: "+f.Pattern+", by "+f.FrozenBy)
	}
	status.Warnings = slices.Concat(status.Warnings, collectorWarnings, verifierWarnings(verifying))
	return writeJSON(c, http.StatusOK, status)
}
