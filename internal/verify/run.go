package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
)

// everything is the pattern of all reports.
const everything = "*"

// Options say what a run is to look at.
type Options struct {
	// Deep has all bytes read and hashed.
	Deep bool
	// Pattern names the reports, and Names is the same as a range. Empty: all of them.
	Pattern string
	Names   catalog.Names
	// Restart begins anew, also where the last run with these options did not come to its end.
	Restart bool
	// By says who asked for it.
	By string
	// Each is told of every object that is not as it was published; nil tells nobody.
	Each func(Finding)
	// Progress is told how far the run has come, after each object; nil tells nobody.
	Progress func(Record)
}

// Run is one look at everything, begun or gone on with, and not yet run.
type Run struct {
	ID      int64
	Resumed bool // it goes on where an earlier process stopped

	attempt  int32
	options  Options
	verifier *Verifier
	record   Record
}

// Begin takes the place of the one run of its kind that may be under way, and goes on with the last one that had the same
// options and did not come to its end. Whoever begins must run it. Errors: ErrAlreadyRunning (*AlreadyRunningError),
// database.ErrUnavailable.
func (v *Verifier) Begin(ctx context.Context, o Options) (*Run, error) {
	const query = `
		SELECT status, verification_id, attempt
		FROM begin_verify(@deep, @pattern, @from, @below, @restart, @by, @silence_ms, @keep_ms)`
	type answer struct {
		Status         string
		VerificationID *int64
		Attempt        *int32
	}
	if o.Pattern == "" {
		o.Pattern, o.Names = everything, catalog.Names{}
	}
	got, err := database.Change[answer](ctx, v.pool, query, pgx.NamedArgs{
		"deep": o.Deep, "pattern": o.Pattern, "from": o.Names.From, "below": o.Names.Below, "restart": o.Restart, "by": o.By,
		"silence_ms": v.cfg.Silence.Milliseconds(), "keep_ms": v.cfg.Keep.Milliseconds(),
	})
	switch {
	case err != nil:
	case got.Status == "started" || got.Status == "resumed":
		return v.begin(ctx, o, *got.VerificationID, *got.Attempt, got.Status == "resumed")
	case got.Status == "already_running":
		err = &AlreadyRunningError{VerificationID: *got.VerificationID}
	case got.Status == "epoch_in_doubt":
		err = database.ErrEpochInDoubt
	default:
		err = fmt.Errorf("unexpected status %q", got.Status)
	}
	return nil, fmt.Errorf("begin a verification: %w", err)
}

// begin makes what has begun, and reads where it stands.
func (v *Verifier) begin(ctx context.Context, o Options, id int64, attempt int32, resumed bool) (*Run, error) {
	r := &Run{ID: id, Resumed: resumed, attempt: attempt, options: o, verifier: v}
	record, err := v.Record(ctx, id)
	if err != nil {
		r.end(ctx, err)
		return nil, err
	}
	r.record = record
	return r, nil
}

// Record is what was known of the run when it began.
func (r *Run) Record() Record { return r.record }

// Run looks at all that is left of a run that was begun, and writes down how it ended. An object that is not as it was
// published is no error: it is told and written down. An error stops the run where it is, and the next one with the same
// options goes on from there.
func (r *Run) Run(ctx context.Context) error {
	ended := false
	defer func() {
		if !ended { // a panic: give the place back
			r.end(ctx, errors.New("the run broke off"))
		}
	}()
	err := r.sweep(ctx)
	ended = true
	r.end(ctx, err)
	if err != nil {
		return fmt.Errorf("verification %d: %w", r.ID, err)
	}
	return nil
}

// sweep does the work, and shows meanwhile that the run lives.
func (r *Run) sweep(asked context.Context) error {
	ctx, stop := context.WithCancelCause(asked)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		r.beat(ctx, stop)
	}()
	defer func() {
		stop(nil)
		<-beating
	}()
	err := r.verifier.ours(ctx)
	if err == nil {
		r.count(ctx)
		err = r.lookAtAll(ctx, stop)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), ErrRunEnded):
		return ErrRunEnded
	case asked.Err() != nil:
		return asked.Err()
	}
	return err
}

// longestCount bounds the counting beforehand, which is for those who watch alone.
const longestCount = 10 * time.Second

// count finds out how much there is to look at. Where that takes too long, nobody learns it.
func (r *Run) count(ctx context.Context) {
	objects, bytes, err := r.verifier.left(database.WithLimit(ctx, longestCount), r.record.place(), r.record.RangeBelow)
	if err != nil {
		r.verifier.log.InfoContext(ctx, "it is not known how much there is to verify", "verification_id", r.ID, "error", err)
		return
	}
	r.record.TotalObjects, r.record.TotalBytes = new(r.record.Objects+objects), new(r.record.Bytes+bytes)
	if err := r.note(ctx, nil); err != nil {
		r.verifier.log.InfoContext(ctx, "how much there is to verify was not written down", "verification_id", r.ID, "error", err)
	}
}

// beat shows that the run still lives, while a large object keeps it from moving by itself, and stops it when it has been
// written off.
func (r *Run) beat(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(r.verifier.cfg.Silence / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := r.write(ctx, pgx.NamedArgs{}); errors.Is(err, ErrRunEnded) {
				stop(err)
			}
		}
	}
}

// end writes down how the run ended, even if it ended because ctx did.
func (r *Run) end(ctx context.Context, failure error) {
	const query = `SELECT status FROM end_verify(@run, @attempt, @outcome, @error)`
	type answer struct{ Status string }
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	outcome := "completed"
	var text *string
	if failure != nil {
		outcome, text = "failed", new(failure.Error())
	}
	if errors.Is(failure, context.Canceled) || errors.Is(failure, errAway) || errors.Is(failure, database.ErrUnavailable) {
		outcome = "stopped"
	}
	args := pgx.NamedArgs{"run": r.ID, "attempt": r.attempt, "outcome": outcome, "error": text}
	_, err := database.Change[answer](ctx, r.verifier.pool, query, args)
	for tries := 1; err != nil && tries < 3; tries++ { // else its place stays taken until it is written off
		_, err = database.Change[answer](ctx, r.verifier.pool, query, args)
	}
	if err != nil {
		r.verifier.log.WarnContext(ctx, "the end of a verification could not be written down", "verification_id", r.ID, "error", err)
	}
}
