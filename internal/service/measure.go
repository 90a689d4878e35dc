package service

import (
	"context"
	"time"

	"github.com/fenceline/fenceline/internal/metrics"
)

// measured says whom a scrape asks: the parts, all of which there are by then.
func (s *Service) measured() metrics.Sources {
	return metrics.Sources{
		Version:           s.cfg.API.Version,
		Pool:              s.Pool.Stat,
		WaitingForLeases:  func() int { return s.Leases.Waiting() },
		WaitingForChanges: func() int { return s.Catalog.Watching() },
		State:             s.state,
		Backlog:           s.backlog,
	}
}

// state asks the database what a scrape shows of it. Error: database.ErrUnavailable.
func (s *Service) state(ctx context.Context) (metrics.State, error) {
	epoch, err := s.Leases.Epoch(ctx)
	if err != nil {
		return metrics.State{}, err
	}
	collecting, err := s.Collector.Situation(ctx)
	if err != nil {
		return metrics.State{}, err
	}
	verifying, err := s.Verifier.Situation(ctx)
	if err != nil {
		return metrics.State{}, err
	}
	frozen, err := s.Catalog.FrozenReports(ctx)
	if err != nil {
		return metrics.State{}, err
	}
	return metrics.State{
		EpochVerified: epoch.Verified, LastSuccess: collecting.LastSuccess, Collecting: collecting.Running,
		Paused: collecting.Paused, Frozen: len(frozen),
		Verifying: verifying.Running, LastVerified: verifying.LastCompletedAt, VerifyFaults: verifying.Faults,
	}, nil
}

// backlog asks the database what the collector has not done. Error: database.ErrUnavailable.
func (s *Service) backlog(ctx context.Context) (metrics.Backlog, error) {
	standing, err := s.Collector.Standing(ctx)
	if err != nil {
		return metrics.Backlog{}, err
	}
	b := metrics.Backlog{
		ReportOnly: standing.ReportOnly, Stuck: standing.Stuck, Oldest: standing.Overdue.Oldest,
		Overdue: map[time.Duration]int64{0: standing.Overdue.Objects},
	}
	for _, h := range standing.HeldBack {
		b.HeldBack += h.Objects
	}
	for _, a := range standing.Overdue.ByAge {
		b.Overdue[a.OlderThan] = a.Objects
	}
	return b, nil
}
