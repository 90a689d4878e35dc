// Package schedule begins what is due by a schedule, one run of it at a time, and survives what panics in it.
package schedule

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"
)

// Parse checks a schedule: five cron fields, which are read in UTC unless a zone stands before them
// ("CRON_TZ=Europe/Berlin 0 3 * * *"), or "@every 1h".
func Parse(text string) error {
	if _, err := cron.ParseStandard(text); err != nil {
		return fmt.Errorf("schedule %q: %w", text, err)
	}
	return nil
}

// Schedule is when something is due, and what is to be done then.
type Schedule struct{ due *cron.Cron }

// New makes a schedule of a text as in [Parse], in UTC; by an empty one nothing is ever due. Nothing runs before Start. A run
// that is due while the one before has not ended is left out.
func New(text string, log *slog.Logger, run func()) (*Schedule, error) {
	said := cronLog{log}
	due := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(said), cron.WithChain(
		// The panic is caught inside: if it passed through SkipIfStillRunning, every later run would be
		// skipped as if this one still ran.
		cron.SkipIfStillRunning(said), cron.Recover(said)))
	if text != "" {
		if _, err := due.AddFunc(text, run); err != nil {
			return nil, fmt.Errorf("schedule %q: %w", text, err)
		}
	}
	return &Schedule{due}, nil
}

// Start lets what is due begin from now on.
func (s *Schedule) Start() { s.due.Start() }

// Stop lets nothing begin any more, and returns when what is under way has ended.
func (s *Schedule) Stop() { <-s.due.Stop().Done() }

// Next is when something is due first after a moment; the zero time if nothing ever is.
func (s *Schedule) Next(after time.Time) time.Time {
	for _, entry := range s.due.Entries() {
		return entry.Schedule.Next(after.In(s.due.Location()))
	}
	return time.Time{}
}

// recovered is run, with what panics in it logged and not passed on.
func recovered(log *slog.Logger, run func()) func() {
	return cron.NewChain(cron.Recover(cronLog{log})).Then(cron.FuncJob(run)).Run
}

// cronLog passes on what the scheduler says.
type cronLog struct{ log *slog.Logger }

// Info implements cron.Logger. What the scheduler does is of interest to those who debug it.
func (l cronLog) Info(msg string, keysAndValues ...any) { l.log.Debug("cron: "+msg, keysAndValues...) }

// Error implements cron.Logger.
func (l cronLog) Error(err error, msg string, keysAndValues ...any) {
	l.log.Error("cron: "+msg, append([]any{"error", err}, keysAndValues...)...)
}
