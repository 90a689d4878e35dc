package database_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testproxy"
)

// acquire is a change like any other.
func acquire(ctx context.Context, pool *pgxpool.Pool, report string) (string, error) {
	type answer struct{ Status string }
	got, err := database.Change[answer](ctx, pool, "SELECT status FROM acquire(@report, 'a7', 'A', 60000)",
		pgx.NamedArgs{"report": report})
	return got.Status, err
}

// seen makes a report known, so that its row can be held.
func seen(t *testing.T, db *testdb.DB, report string) {
	t.Helper()
	testdb.Value[string](t, db, "SELECT status FROM release($1, 'seen')", report)
}

func wantOutcome(t *testing.T, err error, want database.Outcome) {
	t.Helper()
	e, ok := errors.AsType[*database.UnavailableError](err)
	if !ok || !errors.Is(err, database.ErrUnavailable) || e.Outcome != want {
		t.Errorf("got %v, want an outcome that is %s", err, want)
	}
}

// waiting starts a change that comes as far as the report's row, which the test holds.
func waiting(t *testing.T, db *testdb.DB, ctx context.Context) (answered <-chan error, letGo func()) {
	t.Helper()
	seen(t, db, "july")
	letGo = db.HoldReport(t, "july")
	done := make(chan error, 1)
	go func() {
		_, err := acquire(ctx, db.Pool, "july")
		done <- err
	}()
	db.AwaitWaiting(t, 1)
	return done, letGo
}

func TestAnErrorThatTheServerAnswersHasAppliedNothing(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	answered, letGo := waiting(t, db, t.Context())
	db.Exec(t, `
		SELECT pg_cancel_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	wantOutcome(t, <-answered, database.NotApplied)
	letGo()
	if status, err := acquire(t.Context(), db.Pool, "july"); status != "acquired" {
		t.Errorf("afterwards: %q, %v", status, err)
	}
}

func TestASessionThatDiesInTheMiddleLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	answered, letGo := waiting(t, db, t.Context())
	defer letGo()
	db.Exec(t, `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	wantOutcome(t, <-answered, database.Unknown)
}

func TestACallerThatHangsUpInterruptsNothing(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	ctx, hangUp := context.WithCancel(t.Context())
	answered, letGo := waiting(t, db, ctx)
	hangUp()
	letGo()
	if err := <-answered; err != nil {
		t.Errorf("got %v", err)
	}
}

func TestACallerThatIsGoneBeforeAnythingIsSentHasAppliedNothing(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	_, err := acquire(ctx, db.Pool, "july")
	wantOutcome(t, err, database.NotApplied)
	if n := testdb.Value[int](t, db, "SELECT count(*)::int FROM lease"); n != 0 {
		t.Errorf("there are %d leases", n)
	}
}

func TestANetworkThatSwallowsTheAnswerLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	proxy := testproxy.New(t, "unix", db.Pool.Config().ConnConfig.Host+"/.s.PGSQL.5432")
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = proxy.Addr, "sslmode=disable"
	pool := testdb.Open(t, database.Config{URL: u.String(), Pool: 1})
	if _, err := acquire(t.Context(), pool, "may"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	proxy.BlackHole()
	_, err = acquire(ctx, pool, "july")
	wantOutcome(t, err, database.Unknown)
}

func TestAStatementGivesUpAtItsLimitHoweverLongItsRequestMayTake(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	pool := testdb.Open(t, database.Config{URL: db.URL, Pool: 1})
	taken, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := database.WithLimit(t.Context(), 50*time.Millisecond)
	_, err = acquire(ctx, pool, "july") // there is no connection
	wantOutcome(t, err, database.NotApplied)
	taken.Release()

	type row struct{ Slept string }
	_, err = database.Rows[row](ctx, pool, "SELECT pg_sleep(3600)::text AS slept", pgx.NamedArgs{})
	wantOutcome(t, err, database.NotApplied)
}

func TestNoSessionWaitsForAnotherOnAPoolOfOne(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	pool := testdb.Open(t, database.Config{URL: db.URL, Pool: 1})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if status, err := acquire(t.Context(), pool, "july"); err != nil {
				t.Errorf("%q, %v", status, err)
			}
		})
	}
	all.Wait()
}

// Every function that the service may call and that changes something enters by the same door.
func TestAChangeAtAnotherIsolationIsRefused(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	for _, call := range []string{
		"acquire('july', 'a7', 'A', 60000)",
		"renew('july', 'a7', NULL)",
		"release('july', 'a7')",
		"revoke_lease('july', NULL, NULL, 'test', 'test')",
		"reserve('july', 1, 1, 'o', '', NULL, NULL, NULL, NULL, 1000, 1000, 'test')",
		"seal('july', 1, 1, 'o', 0, '', '', NULL, 1000)",
		"discard('july', 1, 1, 'o', 1000)",
		"publish('[]')",
		"begin_run(false, 'test', 60000, 1, 0, 1000)",
	} {
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			tx, err := db.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), "SELECT FROM "+call)
			if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "P0001" {
				t.Errorf("%s at %s: %v, want it refused", call, level, err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestThePoolsOwnSessionsDoNotInheritAnotherIsolation(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	name := testdb.Value[string](t, db, "SELECT current_database()::text")
	db.Exec(t, "ALTER DATABASE "+name+" SET default_transaction_isolation = 'serializable'")
	pool := testdb.Open(t, database.Config{URL: db.URL})
	if status, err := acquire(t.Context(), pool, "july"); status != "acquired" {
		t.Errorf("got %q, %v", status, err)
	}
}

func TestAChangeIsFlushedThoughTheDatabaseWouldNotWait(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // nothing is to be kept
	var setting string
	for _, query := range []string{"SET LOCAL synchronous_commit = off", "SELECT FROM acquire('july', 'a7', 'A', 60000)"} {
		if _, err := tx.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&setting); err != nil || setting != "on" {
		t.Errorf("the commit runs with synchronous_commit = %q, %v", setting, err)
	}
}

func TestADatabaseThatOnlyReadsAppliesNothing(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	name := testdb.Value[string](t, db, "SELECT current_database()::text")
	db.Exec(t, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	pool := testdb.Open(t, database.Config{URL: db.URL})
	_, err := acquire(t.Context(), pool, "july")
	wantOutcome(t, err, database.NotApplied)
}
