package testdb

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Hold begins a transaction of the owner's that keeps what statement locks, until the returned function ends
// it, or the test. It is the barrier at which a test stops a call in the middle of its work: the call waits for
// the lock.
func (db *DB) Hold(t testing.TB, statement string, args ...any) (letGo func()) {
	t.Helper()
	tx, err := db.Owner.BeginTx(t.Context(), pgx.TxOptions{})
	must(t, "begin the barrier", err)
	_, err = tx.Exec(t.Context(), statement, args...)
	must(t, statement, err)
	ended := false
	letGo = func() {
		if !ended {
			ended = true
			must(t, "lift the barrier", tx.Rollback(context.WithoutCancel(t.Context())))
		}
	}
	t.Cleanup(letGo) // before the pools are closed, which would wait for it
	return letGo
}

// HoldReport is Hold of one report's row, under which everything about the report is decided.
func (db *DB) HoldReport(t testing.TB, report string) (letGo func()) {
	t.Helper()
	return db.Hold(t, "SELECT FROM report WHERE report_id = $1 FOR UPDATE", report)
}

// AwaitWaiting returns when n sessions of this database wait for a lock: the calls that a test has started
// have come as far as the barrier.
func (db *DB) AwaitWaiting(t testing.TB, n int) {
	t.Helper()
	const query = `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`
	await(t, fmt.Sprintf("%d sessions wait for a lock", n), func() bool { return Value[int](t, db, query) >= n })
}

// AwaitGone returns when no session of this name is left.
func (db *DB) AwaitGone(t testing.TB, name string) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`
	await(t, "the sessions of "+name+" are gone", func() bool { return Value[int](t, db, query, name) == 0 })
}

// await returns when the condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not in half a minute: %s", what)
		case <-tick.C:
		}
	}
}

// InTurn has calls about one report decided one after the other, although all of them wait for its row at the same
// time, and returns their errors.
func (db *DB) InTurn(t testing.TB, report string, calls ...func(context.Context) error) []error {
	t.Helper()
	letGo := db.HoldReport(t, report)
	errs := make([]error, len(calls))
	var all sync.WaitGroup
	for n, call := range calls {
		all.Go(func() { errs[n] = call(t.Context()) })
		db.AwaitWaiting(t, n+1)
	}
	letGo()
	all.Wait()
	return errs
}
