// Package migrations holds the schema of the catalog: the numbered files that build its tables, in
// goose's format, and in functions/ the present definition of every SQL function, a file each. The
// functions are the only way to write to the tables, so they are applied anew after the numbered
// files, each time.
package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql functions/*.sql
var files embed.FS

// ErrReportsExist reports that the schema was not removed, since reports are recorded in it.
var ErrReportsExist = errors.New("the database holds reports; removing the schema would forget their fences and versions")

// ErrTooNew reports that the database was migrated by a newer program, and this one must not change it.
var ErrTooNew = errors.New("the database was migrated by a newer fenceline")

// Up applies what is missing, as the owner that databaseURL names, and returns the schema's version.
// Several may call it at once: one does the work while the others wait for it.
func Up(ctx context.Context, databaseURL string) (version int64, err error) {
	err = withSchema(ctx, databaseURL, func(s *schema) error {
		applied, err := s.provider.GetDBVersion(ctx)
		if err != nil {
			return fmt.Errorf("read the schema's version: %w", err)
		}
		if applied > Newest() {
			return fmt.Errorf("%w (its schema is at %d, this program's at %d)", ErrTooNew, applied, Newest())
		}
		version = Newest()
		if applied == version {
			if done, err := s.hasFunctions(ctx); done || err != nil {
				return err
			}
		}
		if err := s.closeBarrier(ctx); err != nil {
			return err
		}
		if _, err := s.provider.Up(ctx); err != nil {
			return fmt.Errorf("apply migrations: %w", err)
		}
		return s.applyFunctions(ctx)
	})
	return version, err
}

// Down removes the whole schema, and with it everything that it holds; it refuses with ErrReportsExist
// where there are reports, unless destroy is set. The objects in the bucket stay.
func Down(ctx context.Context, databaseURL string, destroy bool) error {
	return withSchema(ctx, databaseURL, func(s *schema) error {
		applied, err := s.provider.GetDBVersion(ctx)
		if err != nil {
			return fmt.Errorf("read the schema's version: %w", err)
		}
		if applied > Newest() {
			return fmt.Errorf("%w (its schema is at %d, this program's at %d)", ErrTooNew, applied, Newest())
		}
		if applied == 0 {
			return nil
		}
		if err := s.dropFunctions(ctx, destroy); err != nil {
			return err
		}
		return s.dropTables(ctx)
	})
}

// Newest is the number of the newest migration that this program embeds: its own schema version.
func Newest() int64 {
	var newest int64
	for _, name := range names(".") {
		if n, err := goose.NumericComponent(name); err == nil && n > newest {
			newest = n
		}
	}
	return newest
}

// takeBarrier waits, exclusively, at the barrier that every change takes first, until the transaction ends.
const takeBarrier = "SELECT pg_advisory_xact_lock(x'46454e43'::integer, 1)"

// schema is the owner's way to the database, with the migration lock held by the session lock.
type schema struct {
	db       *sql.DB
	lock     *sql.Conn
	provider *goose.Provider
}

// closeBarrier waits at the barrier, exclusively, until the migration has ended: no function of the one release works on
// the tables of the other. And a change that has locked a table and waits for the next would end in a deadlock with
// the guards, which are put on all of them.
func (s *schema) closeBarrier(ctx context.Context) error {
	if _, err := s.lock.ExecContext(ctx, "SELECT pg_advisory_lock(x'46454e43'::integer, 1)"); err != nil {
		return fmt.Errorf("wait for changes under way: %w", err)
	}
	return nil
}

// withSchema calls do while holding a lock that only one migration of the database has at a time.
func withSchema(ctx context.Context, databaseURL string, do func(*schema) error) error {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("parse the database URL: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()

	lock, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer lock.Close() // the lock goes with the session, when db is closed
	if _, err := lock.ExecContext(ctx, "SELECT pg_advisory_lock(x'46454e43'::integer, 0)"); err != nil {
		return fmt.Errorf("wait for other migrations: %w", err)
	}

	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	return do(&schema{db: db, lock: lock, provider: provider})
}

// hasFunctions tells whether the functions are this program's.
func (s *schema) hasFunctions(ctx context.Context) (bool, error) {
	digest, err := Digest()
	if err != nil {
		return false, err
	}
	var present string
	if err := s.db.QueryRowContext(ctx, "SELECT functions_digest FROM schema_compatibility").Scan(&present); err != nil {
		return false, fmt.Errorf("read the fingerprint of the functions: %w", err)
	}
	return present == digest, nil
}

// applyFunctions defines every function anew, in one transaction. As they refer to each other, their bodies are not
// checked before all are there. The barrier is closed meanwhile.
func (s *schema) applyFunctions(ctx context.Context) error {
	digest, err := Digest()
	if err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("define functions: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if _, err := tx.ExecContext(ctx, "SET LOCAL check_function_bodies = off; SET LOCAL client_min_messages = warning"); err != nil {
		return fmt.Errorf("define functions: %w", err)
	}
	for _, name := range names("functions") {
		if err := defineFunction(ctx, tx, name); err != nil {
			return fmt.Errorf("define function %s: %w", name, err)
		}
	}
	// goose's own table, which the service reads to know whether it fits.
	if _, err := tx.ExecContext(ctx, "GRANT SELECT ON "+goose.DefaultTablename+" TO fenceline_service"); err != nil {
		return fmt.Errorf("define functions: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "UPDATE schema_compatibility SET functions_digest = $1", digest); err != nil {
		return fmt.Errorf("note the fingerprint of the functions: %w", err)
	}
	return tx.Commit()
}

// defineFunction defines the function of one file in place of the one that is there, so that a change which is
// waiting for the barrier finds it again. Only where its arguments or its answer have changed it is dropped first.
func defineFunction(ctx context.Context, tx *sql.Tx, name string) error {
	text, err := files.ReadFile(path.Join("functions", name))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "SAVEPOINT present; "+string(text))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code == otherAnswer || refused.Code == twoOfOneName) {
		_, err = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT present; DROP FUNCTION "+functionName(name)+" CASCADE; "+string(text))
	}
	return err
}

// PostgreSQL's codes for a function that cannot be replaced since its answer is another, and for a name that two
// functions have, with other arguments.
const (
	otherAnswer  = "42P13"
	twoOfOneName = "42725"
)

// functionName is the name of the function that a file defines, for use in a statement.
func functionName(file string) string {
	return pgx.Identifier{strings.TrimSuffix(file, ".sql")}.Sanitize()
}

// dropFunctions removes the functions, with the triggers that call them, unless there are reports. The barrier keeps
// every change out between the look and the end: afterwards nobody can make a report any more.
func (s *schema) dropFunctions(ctx context.Context, destroy bool) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("drop functions: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if _, err := tx.ExecContext(ctx, takeBarrier); err != nil {
		return fmt.Errorf("wait for changes under way: %w", err)
	}
	var reports bool
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM report)").Scan(&reports); err != nil {
		return fmt.Errorf("look for reports: %w", err)
	}
	if reports && !destroy {
		return ErrReportsExist
	}
	for _, name := range names("functions") {
		if _, err := tx.ExecContext(ctx, "DROP FUNCTION IF EXISTS "+functionName(name)+" CASCADE"); err != nil {
			return fmt.Errorf("drop function %s: %w", functionName(name), err)
		}
	}
	return tx.Commit()
}

// dropTables removes the tables, and goose's record of what it has applied.
func (s *schema) dropTables(ctx context.Context) error {
	if _, err := s.provider.DownTo(ctx, 0); err != nil {
		return fmt.Errorf("remove the tables: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, "DROP TABLE "+goose.DefaultTablename); err != nil {
		return fmt.Errorf("remove the record of migrations: %w", err)
	}
	return nil
}

// names lists the SQL files of one embedded folder, in byte order.
func names(folder string) []string {
	found, err := fs.Glob(files, path.Join(folder, "*.sql"))
	if err != nil {
		panic(err) // only a malformed pattern fails
	}
	for i := range found {
		found[i] = path.Base(found[i])
	}
	return found
}

// Digest is a fingerprint of all that this program embeds: the same for the same schema.
func Digest() (string, error) {
	sum := sha256.New()
	for _, folder := range []string{".", "functions"} {
		for _, name := range names(folder) {
			text, err := files.ReadFile(path.Join(folder, name))
			if err != nil {
				return "", fmt.Errorf("read %s: %w", name, err)
			}
			fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
