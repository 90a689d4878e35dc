// Package testdb gives each test a database of its own on the PostgreSQL server of the test run: migrated,
// verified, and with a clock that the test moves.
package testdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/migrations"
)

// DB is one test's database.
type DB struct {
	// Pool is the service's: its role may only SELECT and EXECUTE.
	Pool *pgxpool.Pool
	// Owner is the owner's: it may do anything that the triggers allow.
	Owner *pgxpool.Pool
	// URL and OwnerURL are how to reach it as either of the two.
	URL, OwnerURL string
}

// serverVariable names the URL of the server's administrator.
const serverVariable = "FENCELINE_TEST_DATABASE_URL"

// New makes a database that is migrated and whose identity is verified. It is dropped when the test has passed,
// and kept, with its name in the log, when it has failed.
func New(t testing.TB) *DB {
	t.Helper()
	db := Empty(t)
	_, _, err := lease.New(db.Pool).VerifyEpoch(t.Context())
	must(t, "verify the identity", err)
	return db
}

// Empty is New without the verified identity: as a service finds a database on its first start.
func Empty(t testing.TB) *DB {
	t.Helper()
	ctx := t.Context()
	admin := connect(t, serverURL(t, "postgres", ""))
	template := makeTemplate(t, admin)

	name := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	_, err := admin.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", name, template))
	must(t, "create the test's database", err)

	db := &DB{URL: serverURL(t, name, "fenceline_service"), OwnerURL: serverURL(t, name, "")}
	t.Cleanup(func() { drop(t, name) })
	db.Pool = Open(t, database.Config{URL: db.URL, Pool: 20})
	db.Owner = Open(t, database.Config{URL: db.OwnerURL, Pool: 4})
	db.Exec(t, "UPDATE deployment SET deployment_id = gen_random_uuid()") // the template's copies are catalogs of their own
	return db
}

// Blank makes a database without any schema, and returns its owner's URL.
func Blank(t testing.TB) string {
	t.Helper()
	admin := connect(t, serverURL(t, "postgres", ""))
	name := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	_, err := admin.Exec(t.Context(), "CREATE DATABASE "+name)
	must(t, "create the test's database", err)
	t.Cleanup(func() { drop(t, name) })
	return serverURL(t, name, "")
}

// Open makes a pool that is closed when the test ends.
func Open(t testing.TB, c database.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := database.Open(t.Context(), c)
	must(t, "open a pool", err)
	t.Cleanup(pool.Close)
	return pool
}

// Advance moves the database's clock on by d, or back.
func (db *DB) Advance(t testing.TB, d time.Duration) {
	t.Helper()
	_, err := db.Owner.Exec(t.Context(), "UPDATE test_clock SET ahead = ahead + $1::interval", d)
	must(t, "move the clock", err)
}

// Exec runs a statement as the owner, and fails the test where it fails.
func (db *DB) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := db.Owner.Exec(t.Context(), statement, args...)
	must(t, statement, err)
}

// Value reads one value as the owner.
func Value[T any](t testing.TB, db *DB, query string, args ...any) T {
	t.Helper()
	rows, err := db.Owner.Query(t.Context(), query, args...)
	must(t, query, err)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	must(t, query, err)
	return value
}

// makeTemplate makes the migrated database that all tests of this schema copy, once a server.
func makeTemplate(t testing.TB, admin *pgx.Conn) string {
	t.Helper()
	ctx := t.Context()
	name := "template_" + schemaDigest(t)
	_, err := admin.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name)
	must(t, "wait for the template", err)
	defer func() {
		_, err := admin.Exec(ctx, "SELECT pg_advisory_unlock(hashtext($1))", name)
		must(t, "release the template", err)
	}()

	var exists bool
	must(t, "look for the template",
		admin.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists))
	if exists {
		return name
	}
	unfinished := name + "_unfinished"
	_, err = admin.Exec(ctx, "DROP DATABASE IF EXISTS "+unfinished)
	must(t, "remove a template that was not finished", err)
	_, err = admin.Exec(ctx, "CREATE DATABASE "+unfinished)
	must(t, "create the template", err)
	_, err = migrations.Up(ctx, serverURL(t, unfinished, ""))
	must(t, "migrate the template", err)

	owner := connect(t, serverURL(t, unfinished, ""))
	_, err = owner.Exec(ctx, settableClock)
	must(t, "make the clock settable", err)
	must(t, "close the template", owner.Close(ctx))
	_, err = admin.Exec(ctx, fmt.Sprintf("ALTER DATABASE %s RENAME TO %s", unfinished, name))
	must(t, "finish the template", err)
	return name
}

// settableClock replaces the one function by which the catalog reads the time.
const settableClock = `
	CREATE TABLE test_clock (ahead interval NOT NULL);
	INSERT INTO test_clock VALUES ('0');
	GRANT SELECT ON test_clock TO fenceline_service;
	CREATE OR REPLACE FUNCTION fenceline_now() RETURNS timestamptz LANGUAGE sql VOLATILE
	AS 'SELECT clock_timestamp() + (SELECT ahead FROM public.test_clock)';
	DO $$ BEGIN ALTER ROLE fenceline_service LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$`

// schemaDigest names the schema that this build embeds.
func schemaDigest(t testing.TB) string {
	t.Helper()
	digest, err := migrations.Digest()
	must(t, "digest the schema", err)
	sum := sha256.Sum256([]byte(digest + settableClock))
	return hex.EncodeToString(sum[:6])
}

// serverURL is the URL of a database on the test run's server; an empty user is the administrator.
func serverURL(t testing.TB, name, user string) string {
	t.Helper()
	raw := os.Getenv(serverVariable)
	if raw == "" {
		t.Fatalf("%s is not set: run the tests with `make test`, which starts the servers that they need", serverVariable)
	}
	u, err := url.Parse(raw)
	must(t, "parse "+serverVariable, err)
	u.Path = "/" + name
	if user != "" {
		u.User = url.User(user)
	}
	return u.String()
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, "connect", err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = conn.Close(ctx) // a test's own connection: nothing is lost with it
	})
	return conn
}

// drop removes the database of a test that has passed.
func drop(t testing.TB, name string) {
	if t.Failed() {
		t.Logf("the database %s is kept", name)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, serverURL(t, "postgres", ""))
	must(t, "connect", err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
	var refused *pgconn.PgError
	if err != nil && !errors.As(err, &refused) {
		t.Errorf("drop the test's database: %v", err)
	}
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
