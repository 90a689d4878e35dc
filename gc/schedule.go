package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// ParseSchedule checks a schedule: five cron fields, which are read in UTC unless a zone stands before them
// ("CRON_TZ=Europe/Berlin 0 3 * * *"), or "@every 1h".
func ParseSchedule(text string) error {
	if _, err := cron.ParseStandard(text); err != nil {
		return fmt.Errorf("schedule %q: %w", text, err)
	}
	return nil
}

// Serve runs the passes that are due by the schedule, and those that Trigger begins, until ctx ends; it
// returns when the last of them has stopped.
func (c *Collector) Serve(ctx context.Context) error {
	var passes sync.WaitGroup
	defer passes.Wait()

	scheduled, err := c.scheduler(ctx)
	if err != nil {
		return err
	}
	scheduled.Start()
	defer func() { <-scheduled.Stop().Done() }()
	recovered := cron.NewChain(cron.Recover(cronLog{c.log}))

	for {
		select {
		case <-ctx.Done():
			c.giveBack(ctx)
			return nil
		case pass := <-c.begun:
			passes.Go(recovered.Then(cron.FuncJob(func() { c.run(ctx, pass) })).Run)
		}
	}
}

// scheduler makes what begins the passes that are due by the schedule, in UTC; it is not started.
func (c *Collector) scheduler(ctx context.Context) (*cron.Cron, error) {
	log := cronLog{c.log}
	scheduled := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(log), cron.WithChain(
		// The panic is caught inside: if it passed through SkipIfStillRunning, every later run would be
		// skipped as if this one still ran.
		cron.SkipIfStillRunning(log), cron.Recover(log)))
	if c.cfg.Schedule == "" {
		return scheduled, nil
	}
	if _, err := scheduled.AddFunc(c.cfg.Schedule, func() { c.runDue(ctx) }); err != nil {
		return nil, fmt.Errorf("schedule %q: %w", c.cfg.Schedule, err)
	}
	return scheduled, nil
}

// giveBack ends a pass that was triggered and has not been run, so that it does not keep others from beginning.
func (c *Collector) giveBack(ctx context.Context) {
	select {
	case pass := <-c.begun:
		pass.end(ctx, fmt.Errorf("not begun: %w", context.Cause(ctx)))
	default:
	}
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
		pass, err = c.Begin(ctx, Options{By: "schedule", Scan: scan})
	}
	switch {
	case errors.Is(err, ErrAlreadyRunning):
		c.log.InfoContext(ctx, "no scheduled collector pass: one is under way", "error", err)
	case errors.Is(err, ErrPaused):
		c.log.InfoContext(ctx, "no scheduled collector pass: the collector is paused")
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
	level := slog.LevelInfo
	if run.Braked > 0 || run.DeleteFailed > 0 {
		level = slog.LevelWarn
	}
	c.log.Log(ctx, level, "collector pass completed", "run", run.RunID, "dry_run", run.DryRun,
		"condemned", run.Condemned, "put_off", run.PutOff, "braked", run.Braked,
		"scanned", run.ScanKeys != nil, "unknown", run.ScanUnknown, "returned", run.ScanReturned, "foreign", run.ScanForeignObjects,
		"deleted", run.Deleted, "deleted_bytes", run.DeletedBytes, "delete_failed", run.DeleteFailed, "forgotten", run.Forgotten)
}

// cronLog passes on what the scheduler says.
type cronLog struct{ log *slog.Logger }

// Info implements cron.Logger. What the scheduler does is of interest to those who debug it.
func (l cronLog) Info(msg string, keysAndValues ...any) { l.log.Debug("cron: "+msg, keysAndValues...) }

// Error implements cron.Logger.
func (l cronLog) Error(err error, msg string, keysAndValues ...any) {
	l.log.Error("cron: "+msg, append([]any{"error", err}, keysAndValues...)...)
}
