package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

// lookUps counts the look-ups for changes that a pool sends.
type lookUps struct {
	mu    sync.Mutex
	times []time.Time
	sent  chan struct{} // holds a token for each of the first hundred
}

// TraceQueryStart counts one.
func (l *lookUps) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "= ANY (@reports)") || strings.Contains(data.SQL, "= ANY ($1)") {
		l.mu.Lock()
		l.times = append(l.times, time.Now())
		l.mu.Unlock()
		select {
		case l.sent <- struct{}{}:
		default:
		}
	}
	return ctx
}

// TraceQueryEnd does nothing.
func (l *lookUps) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (l *lookUps) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.times)
}

// watching is a desk in a process of its own, which watches until the test ends.
func watching(t *testing.T, db *testdb.DB) (desk, *lookUps) {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	looks := &lookUps{sent: make(chan struct{}, 100)}
	config.ConnConfig.Tracer = looks
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	d := deskOn(db, pool)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Watch(ctx, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		pool.Close()
	})
	return d, looks
}

// awaiting starts to wait for a report to change.
func (d desk) awaiting(ctx context.Context, report fencing.ReportID, known int64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- d.AwaitChange(ctx, report, known) }()
	return done
}

// until returns when a condition holds, and fails the test where it does not in a minute.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: not in a minute", what)
		case <-tick.C:
		}
	}
}

// come returns what a wait ended with, and fails the test where it does not end in a minute.
func come(t *testing.T, waited <-chan error) error {
	t.Helper()
	select {
	case err := <-waited:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the wait did not end")
		return nil
	}
}

func TestAPublishOfAnotherProcessIsSeenByTheNextLookUpButOne(t *testing.T) {
	t.Parallel()
	other := newDesk(t)
	f := other.ready(t, "july", "a7")
	d, looks := watching(t, other.db)
	waited := d.awaiting(t.Context(), "july", 0)
	<-looks.sent // one that saw nothing
	other.applied(t, object(f, "a", "k1"), 1)
	before := looks.count()
	wantErr(t, come(t, waited), nil)
	if n := looks.count() - before; n > 2 {
		t.Errorf("it took %d look-ups", n)
	}
	// And each kind of publish is a change.
	waited = d.awaiting(t.Context(), "july", 1)
	other.applied(t, object(f, "", "k2", expecting(1), func(r *catalog.Request) { r.Withdraw = true }), 2)
	wantErr(t, come(t, waited), nil)
	wantErr(t, come(t, d.awaiting(t.Context(), "july", 1)), nil) // what is old already is told as well
}

func TestAPublishOfThisProcessIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t) // which looks for nothing
	f := d.ready(t, "july", "a7")
	waited := d.awaiting(t.Context(), "july", 0)
	until(t, "somebody waits", func() bool { return d.Watching() == 1 })
	d.applied(t, object(f, "a", "k1"), 1)
	wantErr(t, come(t, waited), nil)
}

func TestAllWhoWaitAreLookedForByOneStatement(t *testing.T) {
	t.Parallel()
	other := newDesk(t)
	const reports, each = 10, 10
	var waits []<-chan error
	d, looks := watching(t, other.db)
	began := time.Now()
	for r := range reports {
		other.grant(t, fmt.Sprint("july.", r), "a7")
		for range each {
			waits = append(waits, d.awaiting(t.Context(), fencing.ReportID(fmt.Sprint("july.", r)), 0))
		}
	}
	until(t, "all wait", func() bool { return d.Watching() == reports*each })
	for range 4 {
		<-looks.sent
	}
	for r := range reports {
		withdraw := catalog.Request{
			Report: fencing.ReportID(fmt.Sprint("july.", r)), Fence: fencing.Fence{Epoch: 1, Counter: 1}, IdempotencyKey: "k", Withdraw: true,
		}
		if _, err := other.Publish(t.Context(), withdraw); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range waits {
		wantErr(t, come(t, w), nil)
	}
	most := int(time.Since(began)/(catalog.LookEvery/2)) + 1
	if n := looks.count(); n > most {
		t.Errorf("%d look-ups in %v, want %d at most", n, time.Since(began), most)
	}
}

func TestWhoeverGivesUpLeavesNothingAndNobodyIsLookedFor(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	d, looks := watching(t, db)
	ctx, giveUp := context.WithCancel(t.Context())
	waits := make([]<-chan error, 50)
	for i := range waits {
		waits[i] = d.awaiting(ctx, fencing.ReportID(fmt.Sprint("july.", i%7)), 0)
	}
	<-looks.sent
	giveUp()
	for _, w := range waits {
		wantErr(t, come(t, w), context.Canceled)
	}
	if n := d.Watching(); n != 0 {
		t.Errorf("%d still wait", n)
	}
	n := looks.count()
	<-time.After(4 * catalog.LookEvery) // one that has begun may come yet, and no more
	if more := looks.count() - n; more > 1 {
		t.Errorf("%d look-ups for nobody", more)
	}
}

func TestOnlySoManyMayWaitForChanges(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, giveUp := context.WithCancel(t.Context())
	waits := make([]<-chan error, catalog.MostWatching)
	for i := range waits {
		waits[i] = d.awaiting(ctx, "july", 0)
	}
	until(t, "all wait", func() bool { return d.Watching() == catalog.MostWatching })
	wantErr(t, d.AwaitChange(ctx, "july", 0), catalog.ErrTooManyWatching)
	giveUp()
	for _, w := range waits {
		wantErr(t, come(t, w), context.Canceled)
	}
	if err := d.AwaitChange(ctx, "july", 0); errors.Is(err, catalog.ErrTooManyWatching) {
		t.Error("the places are not free again")
	}
}
