package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fenceline/fenceline/internal/schedule"
)

// Serve runs what is due by the schedule, and what Trigger begins, until ctx ends; it returns when the last run has stopped.
func (v *Verifier) Serve(ctx context.Context) error {
	scheduled, err := schedule.New(v.cfg.Schedule, v.log, func() { v.runDue(ctx) })
	if err != nil {
		return err
	}
	schedule.Serve(ctx, scheduled, v.log, v.begun,
		func(run *Run) { v.run(ctx, run) },
		func(run *Run) { run.end(ctx, ctx.Err()) }) // so that it does not keep others from beginning
	return nil
}

// errNobodyRuns reports that runs are begun and nobody runs them: Serve has not been called, or has ended.
var errNobodyRuns = errors.New("nothing is verified here")

// Trigger begins a run that Serve runs, and returns its id at once. Errors: as Begin.
func (v *Verifier) Trigger(ctx context.Context, o Options) (int64, error) {
	o.Each = v.alarm(ctx)
	run, err := v.Begin(ctx, o)
	if err != nil {
		return 0, err
	}
	select {
	case v.begun <- run:
		return run.ID, nil
	default: // those that were begun before have not been run
		run.end(ctx, errNobodyRuns)
		return 0, fmt.Errorf("begin a verification: %w", errNobodyRuns)
	}
}

// runDue runs because the time has come, unless a run is under way.
func (v *Verifier) runDue(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	run, err := v.Begin(ctx, Options{By: "schedule", Each: v.alarm(ctx)})
	switch {
	case errors.Is(err, ErrAlreadyRunning):
		v.log.InfoContext(ctx, "no scheduled verification: one is under way", "error", err)
	case err != nil:
		v.log.ErrorContext(ctx, "no scheduled verification", "error", err)
	default:
		v.run(ctx, run)
	}
}

// alarm logs what is not as it was published.
func (v *Verifier) alarm(ctx context.Context) func(Finding) {
	ctx = context.WithoutCancel(ctx)
	return func(f Finding) {
		v.log.ErrorContext(ctx, "bytes are not as they were published", "fault", f.Fault, "report", f.Object.Report,
			"versions", f.Versions, "visible", f.Visible, "key", f.Key, "verification_id", f.VerificationID, "detail", f.Detail)
	}
}

// run runs and logs how it ended.
func (v *Verifier) run(ctx context.Context, run *Run) {
	if err := run.Run(ctx); err != nil {
		v.log.ErrorContext(ctx, "verification stopped: the next one goes on from there", "verification_id", run.ID, "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	r, err := v.Record(ctx, run.ID)
	if err != nil {
		v.log.WarnContext(ctx, "the record of a verification could not be read", "verification_id", run.ID, "error", err)
		return
	}
	level := slog.LevelInfo
	if r.Faults > 0 {
		level = slog.LevelError
	}
	v.log.Log(ctx, level, "verification completed", "verification_id", r.VerificationID, "deep", r.Deep, "objects", r.Objects, "bytes", r.Bytes, "faults", r.Faults)
}
