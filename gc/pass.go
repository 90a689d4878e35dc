package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Options say what a pass is to do.
type Options struct {
	// DryRun writes down what would be done, and does nothing else.
	DryRun bool
	// Scan has it compare the bucket with the rows as well.
	Scan bool
	// By says who asked for it.
	By string
	// Each is told of every object, with what was, or would be, done and why; nil tells nobody.
	Each func(Entry)
	// PhaseEnded is told of each phase that has come to its end, while the record still shows that phase; nil tells
	// nobody.
	PhaseEnded func(ctx context.Context, phase string)

	scheduled bool // its time has come, and nobody asked for it
}

// Pass is one pass of the collector, begun and not yet run.
type Pass struct {
	ID int64 // of its run
	// ReportOnly says that nothing is collected yet on this installation: the pass is a dry run, whatever was asked for.
	ReportOnly bool

	options   Options
	collector *Collector
	throttle  throttle
	told      int64 // the last entry of the ledger that was looked at for what was forgotten
}

// Begin takes the place of the one pass that may be under way. Whoever begins must run it. Errors:
// ErrAlreadyRunning (*AlreadyRunningError), ErrPaused, database.ErrUnavailable.
func (c *Collector) Begin(ctx context.Context, o Options) (*Pass, error) {
	const query = `
		SELECT status, run_id, report_only
		FROM begin_run(@dry_run, @by, @silence_ms, @brake_share, @brake_min, @brake_window_ms, @report_first, @scheduled,
		               nullif(@limit_ms::bigint, 0))`
	type answer struct {
		Status     string
		RunID      *int64
		ReportOnly *bool
	}
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{
		"dry_run": o.DryRun, "by": o.By, "silence_ms": c.cfg.Silence.Milliseconds(), "brake_share": c.cfg.BrakeShare,
		"brake_min": c.cfg.BrakeMin, "brake_window_ms": c.cfg.BrakeWindow.Milliseconds(),
		"report_first": c.cfg.ReportFirst, "scheduled": o.scheduled, "limit_ms": c.cfg.TimeLimit.Milliseconds(),
	})
	switch {
	case err != nil:
	case got.Status == "started":
		o.DryRun = o.DryRun || *got.ReportOnly
		return &Pass{
			ID: *got.RunID, ReportOnly: *got.ReportOnly, options: o, collector: c,
			throttle: throttle{full: c.cfg.atOnce, size: c.cfg.atOnce},
		}, nil
	case got.Status == "already_running":
		err = &AlreadyRunningError{RunID: *got.RunID}
	default:
		err = stepError(got.Status)
	}
	return nil, fmt.Errorf("begin a pass of the collector: %w", err)
}

// Run does the work of a pass that was begun, and writes down how it ended. Any error stops it where it is:
// nothing is deleted on the strength of half an answer, and the next pass goes on from there.
func (p *Pass) Run(ctx context.Context) error {
	ended := false
	defer func() {
		if !ended { // a panic: give the place back
			p.end(ctx, errors.New("the pass broke off"))
		}
	}()
	err := p.phases(ctx)
	ended = true
	p.end(ctx, err)
	if err != nil {
		return fmt.Errorf("collector pass %d: %w", p.ID, err)
	}
	return nil
}

func (p *Pass) phases(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		p.beat(ctx, stop)
	}()
	defer func() {
		stop(nil)
		<-beating
	}()

	phases, err := p.inTurn(ctx, []phase{
		{"condemn", countDue, p.condemn},
		{"purge", countDoomed, p.purge},
		{"forget", "", p.forget},
		{"scan", "", p.scan}, // last, so that a listing that is slow, or fails, starves nothing
	})
	if err != nil {
		return err
	}
	for _, phase := range phases {
		if phase.name == "scan" && !p.options.Scan {
			continue
		}
		if err := p.enterPhase(ctx, phase.name, phase.total); err != nil {
			return err
		}
		if err := phase.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, cause(ctx, err))
		}
		if p.options.PhaseEnded != nil {
			p.options.PhaseEnded(ctx, phase.name)
		}
	}
	return nil
}

// phase is one part of the work of a pass.
type phase struct {
	name  string
	total string // a query of how much there is to do; empty where that is not known
	run   func(context.Context) error
}

// inTurn has a pass begin behind the phase in which the one before ran out of its time, and do that last: however much
// there is to do in a phase, the others come to theirs.
func (p *Pass) inTurn(ctx context.Context, phases []phase) ([]phase, error) {
	const query = `
		SELECT phase, coalesce(outcome = 'time_limit', false) AS late
		FROM gc_run
		WHERE run_id < @run AND NOT dry_run
		ORDER BY run_id DESC
		LIMIT 1`
	type row struct {
		Phase string
		Late  bool
	}
	if p.collector.cfg.TimeLimit == 0 {
		return phases, nil
	}
	last, _, err := database.Row[row](ctx, p.collector.pool, query, pgx.NamedArgs{"run": p.ID})
	if err != nil {
		return nil, fmt.Errorf("read how the pass before has ended: %w", err)
	}
	i := slices.IndexFunc(phases, func(x phase) bool { return x.name == last.Phase })
	if !last.Late || i < 0 {
		return phases, nil
	}
	return slices.Concat(phases[i+1:], phases[:i+1]), nil
}

// cause is why the work was interrupted, if it was, and else err.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && errors.Is(err, context.Canceled) {
		return why
	}
	return err
}

// beat shows that the pass still lives, while a slow storage keeps it from moving by itself, and stops it
// when it has been written off.
func (p *Pass) beat(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(p.collector.cfg.Silence / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := p.showLife(ctx, "", nil); errors.Is(err, ErrRunEnded) {
				stop(err)
			}
		}
	}
}

// showLife notes that the pass lives, and which phase it has entered, with how much there is to do in it, if that is known; an
// empty phase is the same as before.
func (p *Pass) showLife(ctx context.Context, phase string, total *int64) error {
	const query = `SELECT continue_run(@run, nullif(@phase, ''), @total) AS lives`
	type answer struct{ Lives bool }
	got, err := database.Change[answer](ctx, p.collector.pool, query, pgx.NamedArgs{"run": p.ID, "phase": phase, "total": total})
	if err == nil && !got.Lives {
		err = ErrRunEnded
	}
	return err
}

// end writes down how the pass ended, even if it ended because ctx did.
func (p *Pass) end(ctx context.Context, failure error) {
	const query = `SELECT end_run(@run, @outcome, @error)::text AS ended`
	type answer struct{ Ended *string }
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	outcome := "completed"
	var text *string
	if failure != nil {
		outcome, text = "failed", new(failure.Error())
	}
	switch {
	case errors.Is(failure, ErrPaused):
		outcome = "paused"
	case errors.Is(failure, ErrTimeLimit):
		outcome = "time_limit"
	case errors.Is(failure, context.Canceled): // it was interrupted, as by the end of the process
		outcome = "stopped"
	}
	if !p.options.DryRun {
		p.collector.cfg.Metrics.PassEnded(outcome)
	}
	args := pgx.NamedArgs{"run": p.ID, "outcome": outcome, "error": text}
	_, err := database.Change[answer](ctx, p.collector.pool, query, args)
	for tries := 1; err != nil && tries < 3; tries++ { // else its place stays taken until it is written off
		_, err = database.Change[answer](ctx, p.collector.pool, query, args)
	}
	if err != nil {
		p.collector.log.WarnContext(ctx, "the end of a collector pass could not be written down", "run", p.ID, "error", err)
	}
}

// stepError is the error of the statuses that the steps of a pass have in common.
func stepError(status string) error {
	switch status {
	case "epoch_in_doubt":
		return database.ErrEpochInDoubt
	case "paused":
		return ErrPaused
	case "reported":
		return errReported
	case "run_ended":
		return ErrRunEnded
	default:
		return fmt.Errorf("unexpected status %q", status)
	}
}
