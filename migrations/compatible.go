package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline/fenceline/internal/database"
)

// ErrNotMigrated reports that the database's schema is missing, or older than this program needs.
var ErrNotMigrated = errors.New("the database is not migrated: run `fenceline migrate up` as its owner, or serve with --migrate")

// ErrTooOld reports that the database's schema has moved on to where this program cannot follow.
var ErrTooOld = errors.New("this fenceline is too old for the database's schema: install a newer one")

// State is how far a database's schema is.
type State struct {
	// Applied is the number of the newest migration that was applied; 0 where there is none.
	Applied int64
	// CompatibleFrom is the number of the oldest program's newest migration that still works with it.
	CompatibleFrom int64
}

// querier is a pool or a connection.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ReadState reads how far the schema of a database is.
func ReadState(ctx context.Context, db querier) (State, error) {
	const query = `
		SELECT (SELECT max(version_id) FROM goose_db_version WHERE is_applied),
		       (SELECT compatible_from FROM schema_compatibility)`
	var s State
	err := db.QueryRow(ctx, query).Scan(&s.Applied, &s.CompatibleFrom)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == undefinedTable {
		return State{}, nil
	}
	if err != nil && refused == nil {
		err = &database.UnavailableError{Outcome: database.NotApplied, Cause: err}
	}
	if err != nil {
		return State{}, fmt.Errorf("read the schema's version: %w", err)
	}
	return s, nil
}

// Fits reports whether this program works with the schema of a database: nil, or as [State.Check].
func Fits(ctx context.Context, db querier) error {
	state, err := ReadState(ctx, db)
	if err != nil {
		return err
	}
	return state.Check()
}

// undefinedTable is PostgreSQL's code for a table that does not exist.
const undefinedTable = "42P01"

// Check reports whether this program works with a schema in that state: nil, ErrNotMigrated or ErrTooOld.
// A newer schema is accepted as long as it says that it is compatible, so that two releases can run side
// by side while one replaces the other.
func (s State) Check() error {
	switch {
	case s.Applied < Newest():
		return fmt.Errorf("%w (its schema is at %d, this program needs %d)", ErrNotMigrated, s.Applied, Newest())
	case s.CompatibleFrom > Newest():
		return fmt.Errorf("%w (it needs %d, this program has %d)", ErrTooOld, s.CompatibleFrom, Newest())
	default:
		return nil
	}
}
