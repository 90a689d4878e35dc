package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

const (
	// pageSize is how many rows are read at once.
	pageSize = 500
	// noteEvery and noteAfter bound what a run that dies has to do again.
	noteEvery = 100
	noteAfter = time.Second
)

// judged is an object, and what was seen of it.
type judged struct {
	object shown
	seen   seen
	err    error
}

// lookAtAll looks at what is left, several objects side by side, and writes down how far it has come in the order of their key:
// what was looked at out of turn counts once its turn has come.
func (r *Run) lookAtAll(ctx context.Context, stop context.CancelCauseFunc) error {
	turns := make(chan chan judged, r.verifier.cfg.Concurrency)
	walked := make(chan error, 1)
	go func() {
		defer close(turns)
		walked <- safely(func() error { return r.walk(ctx, turns) })
	}()
	err := r.take(ctx, turns)
	if err != nil {
		stop(err)
		for turn := range turns { // so that none is left who waits
			<-turn
		}
		return err
	}
	return <-walked
}

// safely turns a panic, which would end the process from here, into an error.
func safely(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// walk lets a look at each object that is shown begin, and hands out the turns in order.
func (r *Run) walk(ctx context.Context, turns chan<- chan judged) error {
	places := make(chan struct{}, r.verifier.cfg.Concurrency)
	pace, stop := paced(r.verifier.cfg.Pace)
	defer stop()
	for at := r.record.place(); ; {
		rows, err := r.verifier.page(ctx, at, r.record.RangeBelow, pageSize)
		if err != nil {
			return err
		}
		for _, found := range rows {
			at = placeOf(found.name())
			if len(found.Versions) == 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-pace:
			}
			places <- struct{}{}
			turn := make(chan judged, 1)
			turns <- turn
			go func() {
				defer func() { <-places }()
				turn <- r.judge(ctx, found.shown())
			}()
		}
		if len(rows) < pageSize {
			return nil
		}
	}
}

// paced is what to receive from before each object: a tick, or at once without a pace.
func paced(perSecond float64) (<-chan time.Time, func()) {
	if perSecond <= 0 {
		always := make(chan time.Time)
		close(always)
		return always, func() {}
	}
	ticker := time.NewTicker(max(1, time.Duration(float64(time.Second)/perSecond)))
	return ticker.C, ticker.Stop
}

func (r *Run) judge(ctx context.Context, o shown) judged {
	j := judged{object: o}
	j.err = safely(func() (err error) {
		j.seen, err = r.verifier.judge(ctx, o, r.options.Deep)
		return err
	})
	return j
}

// take takes the turns in order, tells what was found, and writes it down bit by bit; at the end also where the end is an error.
func (r *Run) take(ctx context.Context, turns <-chan chan judged) (err error) {
	var passed batch
	noted := time.Now()
	defer func() {
		kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if !errors.Is(context.Cause(ctx), ErrRunEnded) {
			err = errors.Join(err, r.note(kept, &passed))
		}
	}()
	for turn := range turns {
		j := <-turn
		if j.err != nil {
			return j.err
		}
		passed.add(j)
		r.tell(j, passed)
		if passed.objects >= noteEvery || time.Since(noted) >= noteAfter {
			if err := r.note(ctx, &passed); err != nil {
				return err
			}
			noted = time.Now()
		}
	}
	return nil
}

// tell passes on what was found, and how far the run has come.
func (r *Run) tell(j judged, passed batch) {
	if r.options.Each != nil && j.seen.Fault != "" {
		r.options.Each(j.finding(r.ID))
	}
	if r.options.Progress != nil {
		now := r.record
		now.Objects, now.Bytes, now.Faults = now.Objects+passed.objects, now.Bytes+passed.bytes, now.Faults+int64(len(passed.findings))
		r.options.Progress(now)
	}
}

// batch is what was passed since it was written down last.
type batch struct {
	any            bool
	place          place
	objects, bytes int64
	findings       []noted
}

func (b *batch) add(j judged) {
	b.any, b.place = true, placeOf(j.object.Name)
	if j.seen.gone {
		return
	}
	b.objects++
	b.bytes += j.object.Size
	if j.seen.Fault != "" {
		b.findings = append(b.findings, j.noted())
	}
}

// note writes down what was passed, and begins a new batch; without one it writes the totals.
func (r *Run) note(ctx context.Context, passed *batch) error {
	args := pgx.NamedArgs{"total_objects": r.record.TotalObjects, "total_bytes": r.record.TotalBytes}
	if passed != nil {
		if !passed.any {
			return nil
		}
		findings := passed.findings
		if findings == nil {
			findings = []noted{}
		}
		text, err := json.Marshal(findings)
		if err != nil {
			return fmt.Errorf("encode what was found: %w", err)
		}
		args["report"], args["epoch"], args["counter"], args["object"] = passed.place.Report, passed.place.Epoch, passed.place.Counter, passed.place.Object
		args["objects"], args["bytes"], args["findings"] = passed.objects, passed.bytes, text
	}
	if _, err := r.write(ctx, args); err != nil {
		return fmt.Errorf("write down what was verified: %w", err)
	}
	if passed != nil {
		r.record.Objects, r.record.Bytes, r.record.Faults = r.record.Objects+passed.objects, r.record.Bytes+passed.bytes, r.record.Faults+int64(len(passed.findings))
		*passed = batch{}
	}
	return nil
}

// write calls note_verified; what args leave away is NULL.
func (r *Run) write(ctx context.Context, args pgx.NamedArgs) (status string, err error) {
	const query = `
		SELECT status
		FROM note_verified(@run, @attempt, @report, @epoch, @counter, @object, @objects, @bytes, @total_objects, @total_bytes, @findings)`
	type answer struct{ Status string }
	args["run"], args["attempt"] = r.ID, r.attempt
	for _, name := range []string{"report", "epoch", "counter", "object", "objects", "bytes", "total_objects", "total_bytes", "findings"} {
		if _, given := args[name]; !given {
			args[name] = nil
		}
	}
	got, err := database.Change[answer](ctx, r.verifier.pool, query, args)
	if err == nil && got.Status == "run_ended" {
		err = ErrRunEnded
	}
	return got.Status, err
}
