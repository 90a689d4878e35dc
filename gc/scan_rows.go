package gc

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/staging"
)

// knownRow is what a scan needs to know of a row.
type knownRow struct {
	Key       string
	State     staging.State
	VersionID *string
}

// holds tells whether it is the row's own bytes that are stored: on a bucket that had no versions when they were
// written, those have the version "null".
func (r knownRow) holds(stored staging.Stored) bool {
	return !stored.Marker && version(r.VersionID) == version(&stored.VersionID)
}

func version(id *string) string {
	if id == nil || *id == "null" {
		return ""
	}
	return *id
}

// rowStream reads the rows of a deployment in the order of their keys, a page at a time and without a transaction that lasts.
// What changes behind it is looked up again by whoever acts upon it.
type rowStream struct {
	pool *pgxpool.Pool
	end  string // above all keys
	size int

	page  []knownRow
	whole bool // there is nothing after the page
}

// at is the row of a key, if there was one when its page was read. Keys are asked for in their order.
func (s *rowStream) at(ctx context.Context, key string) (row knownRow, known bool, err error) {
	for {
		for len(s.page) > 0 && s.page[0].Key < key {
			s.page = s.page[1:]
		}
		if len(s.page) > 0 {
			return s.page[0], s.page[0].Key == key, nil
		}
		if s.whole {
			return knownRow{}, false, nil
		}
		if err := s.read(ctx, key); err != nil {
			return knownRow{}, false, err
		}
	}
}

// read reads the page that begins at a key.
func (s *rowStream) read(ctx context.Context, from string) (err error) {
	const query = `
		SELECT key, state, version_id
		FROM object
		WHERE key >= @from AND key < @end
		ORDER BY key
		LIMIT @size`
	s.page, err = database.Rows[knownRow](ctx, s.pool, query, pgx.NamedArgs{"from": from, "end": s.end, "size": s.size})
	s.whole = len(s.page) < s.size
	return err
}
