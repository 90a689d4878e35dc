package database

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MayWrite tells whether the pool's role could write to the catalog's tables without its functions, as the
// service's own role never may.
func MayWrite(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	const query = `
		SELECT bool_or(has_table_privilege(name, 'INSERT, UPDATE, DELETE, TRUNCATE')) AS writes
		FROM unnest(ARRAY['report', 'publication', 'lease', 'object', 'epoch']) AS name`
	type answer struct{ Writes bool }
	got, _, err := Row[answer](ctx, pool, query, pgx.NamedArgs{})
	return got.Writes, err
}
