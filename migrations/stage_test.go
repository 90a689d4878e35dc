package migrations_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/migrations"
)

// migrated makes a database as `migrate up` leaves it, without the settable clock of other tests, and returns
// its owner's pool.
func migrated(t testing.TB) *pgxpool.Pool {
	t.Helper()
	url := testdb.Blank(t)
	if _, err := migrations.Up(t.Context(), url); err != nil {
		t.Fatalf("up: %v", err)
	}
	return open(t, url)
}

// open makes a small pool.
func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	return testdb.Open(t, database.Config{URL: url, Pool: 2})
}

// column reads a column of values.
func column[T any](t testing.TB, pool *pgxpool.Pool, query string, args ...any) []T {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}

// runner is a connection, a transaction or a pool.
type runner interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// call runs a statement that begins with SELECT status, and fails the test unless that is the status.
func call(t testing.TB, on runner, want, statement string, args ...any) {
	t.Helper()
	var got string
	if err := on.QueryRow(t.Context(), statement, args...).Scan(&got); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if got != want {
		t.Fatalf("%s: %s, want %s", statement, got, want)
	}
}

// staged is an object's way to "sealed", as the service walks it.
func stage(t testing.TB, on runner, counter int, object string) {
	t.Helper()
	call(t, on, "reserved", `SELECT status FROM reserve('july', 1, $1, $2, '', 'text/csv', NULL, 5, NULL, 3600000, 86400000, 'test')`, counter, object)
	call(t, on, "sealed", `SELECT status FROM seal('july', 1, $1, $2, 5, sha256($2::text::bytea), 'etag', NULL, 86400000)`, counter, object)
}

// publish makes a staged object the next version.
func publish(t testing.TB, on runner, counter int, object string) {
	t.Helper()
	call(t, on, "applied", `SELECT status FROM publish(jsonb_build_array(jsonb_build_object(
		'report', 'july', 'epoch', 1, 'counter', $1::integer, 'object_id', $2::text, 'idempotency_key', $2::text)))`, counter, object)
}
