package catalog_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testproxy"
)

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// wantOutcome fails the test unless err says that the database could not decide, and what is known.
func wantOutcome(t *testing.T, err error, want database.Outcome) {
	t.Helper()
	wantErr(t, err, database.ErrUnavailable)
	got := database.NotApplied
	if e, ok := errors.AsType[*database.UnavailableError](err); ok {
		got = e.Outcome
	}
	if got != want {
		t.Errorf("the outcome of %v is %s, want %s", err, got, want)
	}
}

// beyond is a desk whose catalog reaches the database through a proxy.
func beyond(t *testing.T) (desk, *testproxy.Proxy) {
	t.Helper()
	db := testdb.New(t)
	at := db.Pool.Config().ConnConfig
	network, address := "unix", at.Host+"/.s.PGSQL.5432"
	p := testproxy.New(t, network, address)
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = p.Addr, "sslmode=disable"
	pool := testdb.Open(t, database.Config{URL: u.String(), Pool: 1})
	return deskOn(db, pool), p
}

func TestAPublishWhoseSessionDiesAtTheLockIsUnknownAndItsRepetitionFindsOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	letGo := d.db.HoldReport(t, "july")
	publish := d.publishing(t, object(f, "a", "k1"), 1)
	d.db.Exec(t, `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	_, err := publish()
	wantOutcome(t, err, database.Unknown)
	letGo()
	d.applied(t, object(f, "a", "k1"), 1)
	d.duplicate(t, object(f, "a", "k1"), 1, true)
	d.shows(t, "a", f, 1)
}

func TestACommitWhoseAnswerIsLostIsUnknownAndItsRepetitionIsADuplicate(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 7} { // how many bytes of the answer arrive
		d, proxy := beyond(t)
		f := d.ready(t, "july", "a7")
		if err := sealIn(d.db.Pool)(t.Context(), fencing.ObjectName{Report: "july", Fence: f, Object: "a"}); err != nil {
			t.Fatal(err)
		}
		proxy.Hold("the-key")
		type answer struct {
			receipt catalog.Receipt
			err     error
		}
		done := make(chan answer, 1)
		go func() {
			receipt, err := d.Publish(t.Context(), object(f, "a", "the-key"))
			done <- answer{receipt, err}
		}()
		proxy.AwaitHeld(t)
		proxy.CutAnswer(n)
		proxy.LetGo()
		wantOutcome(t, (<-done).err, database.Unknown)

		d.duplicate(t, object(f, "a", "the-key"), 1, true)
		d.shows(t, "a", f, 1)
	}
}

func TestADatabaseThatCannotBeReachedHasAppliedNothing(t *testing.T) {
	t.Parallel()
	d, proxy := beyond(t)
	f := d.ready(t, "july", "a7")
	proxy.Refuse()
	_, err := d.Publish(t.Context(), object(f, "a", "k1"))
	wantOutcome(t, err, database.NotApplied)
	_, err = d.Visible(t.Context(), "july")
	wantErr(t, err, database.ErrUnavailable)
	direct := deskOn(d.db, d.db.Pool)
	direct.applied(t, object(f, "a", "k1"), 1)
}

func TestAPublishThatRunsOutOfTimeAtTheLockIsUnknown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	letGo := d.db.HoldReport(t, "july")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := d.Publish(ctx, object(f, "a", "k1"))
	wantOutcome(t, err, database.Unknown)
	letGo()
	if _, err := d.Publish(t.Context(), object(f, "a", "k1")); err != nil {
		t.Errorf("the repetition got %v", err)
	}
	d.shows(t, "a", f, 1)
}

func TestACallerThatGoesAwayDoesNotInterruptItsPublish(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	letGo := d.db.HoldReport(t, "july")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := d.Publish(ctx, catalog.Request{Report: "july", Fence: f, Withdraw: true, IdempotencyKey: "k1"})
		done <- err
	}()
	d.db.AwaitWaiting(t, 1)
	cancel()
	letGo()
	if err := <-done; err != nil {
		t.Errorf("it got %v", err)
	}
	if n := testdb.Value[int](t, d.db, "SELECT count(*)::int FROM publication"); n != 1 {
		t.Errorf("there are %d versions", n)
	}
}

func TestAStorageThatIsAwayHidesNeitherADuplicateNorAStaleFence(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	away := errors.New("the storage is away")
	d.Catalog = catalog.New(d.db.Pool, func(context.Context, fencing.ObjectName) error { return away }, catalog.Config{})
	a := d.ready(t, "july", "a7")
	withdraw := catalog.Request{Report: "july", Fence: a, Withdraw: true, IdempotencyKey: "k1"}
	d.applied(t, withdraw, 1)
	d.refused(t, object(a, "a", "k2", expecting(1)), away)
	d.refused(t, object(a, "a", "k2", expecting(7)), catalog.ErrVersionConflict)
	d.refused(t, object(a, "a", "k1"), catalog.ErrKeyReused)
	d.duplicate(t, withdraw, 1, true)
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	d.stale(t, object(a, "a", "k2", expecting(1)), b, "superseded")
}
