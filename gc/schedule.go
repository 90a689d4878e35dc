package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fenceline/fenceline/internal/schedule"
)

// Serve runs the passes that are due by the schedule, and those that Trigger begins, until ctx ends; it
// returns when the last of them has stopped.
func (c *Collector) Serve(ctx context.Context) error {
	scheduled, err := c.scheduler(ctx)
	if err != nil {
		return err
	}
	schedule.Serve(ctx, scheduled, c.log, c.begun,
		func(pass *Pass) { c.run(ctx, pass) },
		// so that it does not keep others from beginning
		func(pass *Pass) { pass.end(ctx, fmt.Errorf("not begun: %w", context.Cause(ctx))) })
	return nil
}

// scheduler makes what begins the passes that are due by the schedule; it is not started.
func (c *Collector) scheduler(ctx context.Context) (*schedule.Schedule, error) {
	return schedule.New(c.cfg.Schedule, c.log, func() { c.runDue(ctx) })
}

// errNobodyRuns reports that passes are begun and nobody runs them: Serve has not been called, or has ended.
var errNobodyRuns = errors.New("the collector does not run here")

// Trigger begins a pass that Serve runs, and returns its id at once. Errors: as Begin.
func (c *Collector) Trigger(ctx context.Context, o Options) (int64, error) {
	pass, err := c.Begin(ctx, o)
	if err != nil {
		return 0, err
	}
	select {
	case c.begun <- pass:
		return pass.ID, nil
	default: // one that was begun before has not been run, and was written off meanwhile
		pass.end(ctx, errNobodyRuns)
		return 0, fmt.Errorf("begin a pass of the collector: %w", errNobodyRuns)
	}
}

// runDue runs a pass because its time has come, unless one is under way.
func (c *Collector) runDue(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	scan, err := c.scanDue(ctx)
	var pass *Pass
	if err == nil {
		pass, err = c.Begin(ctx, Options{By: "schedule", Scan: scan, scheduled: true})
	}
	switch {
	case errors.Is(err, ErrAlreadyRunning):
		c.log.InfoContext(ctx, "no scheduled collector pass: one is under way", "error", err)
	case errors.Is(err, ErrPaused):
		c.log.InfoContext(ctx, "no scheduled collector pass: the collector is paused")
	case errors.Is(err, errReported):
		c.log.DebugContext(ctx, "no scheduled collector pass", "error", err)
	case err != nil:
		c.log.ErrorContext(ctx, "no scheduled collector pass", "error", err)
	default:
		c.run(ctx, pass)
	}
}

// run runs a pass and logs how it ended.
func (c *Collector) run(ctx context.Context, pass *Pass) {
	switch err := pass.Run(ctx); {
	case errors.Is(err, ErrPaused):
		c.log.InfoContext(ctx, "collector pass stopped: the collector is paused", "run", pass.ID)
		return
	case errors.Is(err, context.Canceled):
		c.log.InfoContext(ctx, "collector pass stopped: the next goes on", "run", pass.ID)
		return
	case errors.Is(err, ErrTimeLimit): // what it has done is told all the same
	case err != nil:
		c.log.ErrorContext(ctx, "collector pass failed", "run", pass.ID, "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	run, err := c.Record(ctx, pass.ID)
	if err != nil {
		c.log.WarnContext(ctx, "the record of a collector pass could not be read", "run", pass.ID, "error", err)
		return
	}
	c.logRun(ctx, run)
}

// logRun logs what a pass did, and loudly what needs a look.
func (c *Collector) logRun(ctx context.Context, run Record) {
	level, message := slog.LevelInfo, "collector pass completed"
	if run.DeleteFailed > 0 {
		level = slog.LevelWarn
	}
	if run.Outcome != nil && *run.Outcome == "time_limit" {
		message = "collector pass stopped at its time limit: the next goes on"
	}
	c.log.Log(ctx, level, message, "run", run.RunID, "dry_run", run.DryRun, "report_only", run.ReportOnly,
		"condemned", run.Condemned, "put_off", run.PutOff, "braked", run.Braked,
		"scanned", run.ScanKeys != nil, "unknown", run.ScanUnknown, "returned", run.ScanReturned, "foreign", run.ScanForeignObjects,
		"deleted", run.Deleted, "deleted_bytes", run.DeletedBytes, "delete_failed", run.DeleteFailed, "forgotten", run.Forgotten)
	switch {
	case run.ReportOnly:
		c.log.WarnContext(ctx, "the collector only reports until an operator approves a run", "run", run.RunID, "would_condemn", run.Condemned)
	case run.Braked > 0 && !run.DryRun:
		c.log.WarnContext(ctx, "the collector's brake has tripped: objects are held back until an operator approves the run",
			"run", run.RunID, "objects", run.Braked, "bytes", run.BrakedBytes)
	}
}
