package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fenceline/fenceline/gc"
)

// collectorView is what the collector has not done, and why.
type collectorView struct {
	ReportOnly         bool              `json:"report_only"`
	HeldBack           []heldBackRunView `json:"held_back"`
	Stuck              int64             `json:"stuck"`
	Overdue            overdueView       `json:"overdue"`
	LastCompleteScanAt *time.Time        `json:"last_complete_scan_at"`
}

// heldBackRunView is what one run's brake holds back now.
type heldBackRunView struct {
	RunID int64 `json:"run_id"`
	count
}

// overdueView counts what should have gone by now.
type overdueView struct {
	Objects  int64     `json:"objects"`
	OldestMs int64     `json:"oldest_ms"` // 0 if there is none
	ByAge    []ageView `json:"by_age"`
}

// ageView counts what should have gone longer ago than that.
type ageView struct {
	OlderThanMs int64 `json:"older_than_ms"`
	Objects     int64 `json:"objects"`
}

func viewStanding(s gc.Standing) collectorView {
	v := collectorView{
		ReportOnly: s.ReportOnly, HeldBack: []heldBackRunView{}, Stuck: s.Stuck, LastCompleteScanAt: s.LastCompleteScan,
		Overdue: overdueView{Objects: s.Overdue.Objects, OldestMs: s.Overdue.Oldest.Milliseconds()},
	}
	for _, h := range s.HeldBack {
		v.HeldBack = append(v.HeldBack, heldBackRunView{h.RunID, count{h.Objects, h.Bytes}})
	}
	for _, a := range s.Overdue.ByAge {
		v.Overdue.ByAge = append(v.Overdue.ByAge, ageView{a.OlderThan.Milliseconds(), a.Objects})
	}
	return v
}

// recentRuns is how many passes are looked at for one that tells something: the newest may be under way, or dry.
const recentRuns = 20

// collectorStatus reads how the collector stands: the newest pass that was no dry run, what was not done, and what needs a look.
func (s *Server) collectorStatus(ctx context.Context, key Key) (last *runView, standing collectorView, warnings []string, err error) {
	runs, err := s.cfg.Collector.Records(ctx, 0, recentRuns)
	if err != nil {
		return nil, collectorView{}, nil, err
	}
	got, err := s.cfg.Collector.Standing(ctx)
	if err != nil {
		return nil, collectorView{}, nil, err
	}
	if i := slices.IndexFunc(runs, func(r gc.Record) bool { return !r.DryRun }); i >= 0 {
		view := viewRun(runs[i]).shownTo(key)
		last = &view
	}
	return last, viewStanding(got), append(runWarnings(runs), standingWarnings(got)...), nil
}

// runWarnings says what the newest pass that has ended, and was not a dry run, should be looked at for.
func runWarnings(runs []gc.Record) []string {
	for _, r := range runs {
		switch {
		case r.Outcome == nil || r.DryRun:
			continue
		case *r.Outcome == "failed":
			return []string{fmt.Sprintf("the collector's run %d failed", r.RunID)}
		}
		return nil
	}
	return nil
}

// standingWarnings says what the collector has not done and waits for somebody to look at.
func standingWarnings(s gc.Standing) []string {
	var warnings []string
	switch {
	case s.ReportOnly && s.ReportedRun != nil:
		warnings = append(warnings, fmt.Sprintf(
			"the collector only reports: look at what run %[1]d would have done, and let it begin with `fenceline gc approve %[1]d`", *s.ReportedRun))
	case s.ReportOnly:
		warnings = append(warnings, "the collector only reports: look at what its first run would do, and let it begin with `fenceline gc approve RUN`")
	}
	switch n := len(s.HeldBack); {
	case n == 1:
		h := s.HeldBack[0]
		warnings = append(warnings, fmt.Sprintf(
			"the collector's brake holds %d objects back (%d bytes): look at them, and let them go with `fenceline gc approve %d`",
			h.Objects, h.Bytes, h.RunID))
	case n > 1:
		warnings = append(warnings, fmt.Sprintf(
			"the collector's brake holds objects back for %d runs (%d objects of the first, run %d): look at them, and let them go with `fenceline gc approve RUN`",
			n, s.HeldBack[0].Objects, s.HeldBack[0].RunID))
	}
	if s.Stuck > 0 {
		warnings = append(warnings, fmt.Sprintf("%d objects could not be deleted in ten attempts and more", s.Stuck))
	}
	return warnings
}
