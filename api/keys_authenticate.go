package api

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
)

// ErrUnauthenticated reports that a secret is missing, unknown, expired or
// revoked; which of these is nobody's business.
var ErrUnauthenticated = errors.New("unauthenticated")

// Authenticate finds the key that a secret belongs to, or ErrUnauthenticated,
// and notes that the key was used. Any other error says that the database could
// not be asked.
func (k *Keys) Authenticate(ctx context.Context, secret string) (Key, error) {
	id, ok := secretID(secret)
	if !ok {
		return Key{}, ErrUnauthenticated
	}
	ctx, cancel := context.WithTimeout(ctx, database.Limit(ctx)) // the request itself may take far longer
	defer cancel()
	conn, err := k.pool.Acquire(ctx)
	if err != nil {
		return Key{}, fmt.Errorf("look up key %s: %w", id, err)
	}
	defer conn.Release()

	const query = `
		SELECT key_id AS id, hash, name, role, pattern, created_at, expires_at,
			coalesce(last_used_at, '-infinity') <= fenceline_now() - interval '1 minute' AS note_is_due
		FROM api_key
		WHERE key_id = @key_id
			AND (revoked_at IS NULL OR revoked_at > fenceline_now())
			AND (expires_at IS NULL OR expires_at > fenceline_now())`
	type row struct {
		Key
		Hash      []byte
		NoteIsDue bool
	}
	rows, err := conn.Query(ctx, query, pgx.NamedArgs{"key_id": id})
	if err != nil {
		return Key{}, fmt.Errorf("look up key %s: %w", id, err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
	if errors.Is(err, pgx.ErrNoRows) {
		return Key{}, ErrUnauthenticated
	}
	if err != nil {
		return Key{}, fmt.Errorf("look up key %s: %w", id, err)
	}
	if subtle.ConstantTimeCompare(hashOf(secret), found.Hash) != 1 {
		return Key{}, ErrUnauthenticated
	}
	if found.NoteIsDue {
		k.noteUse(ctx, conn, id)
	}
	return found.Key, nil
}

const (
	// noteTimeout is how long a note may hold a request up. It waits for no lock
	// on a row, no disk and no standby, so only a sick database takes so long.
	noteTimeout = time.Second
	// notesPause follows a note that has failed: a database that takes none (a
	// standby, say) costs a request and a line in the log a minute, not each one.
	notesPause = time.Minute
)

// noteUse writes down that a key was used now. It is done here and now, by the
// one request a minute and key that finds it due, on the connection that this
// request holds already: so nothing runs on behind anybody's back, nothing has
// to be flushed when the service stops, and a pool of one is enough. A failure
// is logged; the request has been authenticated, and goes on.
func (k *Keys) noteUse(ctx context.Context, conn *pgxpool.Conn, id string) {
	if time.Now().UnixNano() < k.notesPausedUntil.Load() {
		return
	}
	// A caller that goes away must not cost the pool this connection.
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	const query = `SELECT touch_key(@key_id)`
	if _, err := conn.Exec(noting, query, pgx.NamedArgs{"key_id": id}); err != nil {
		k.notesPausedUntil.Store(time.Now().Add(notesPause).UnixNano())
		k.log.WarnContext(ctx, "the use of a key could not be noted", "key_id", id, "error", err)
	}
}

// secretID is the id inside a secret of the right form.
func secretID(secret string) (string, bool) {
	parts := strings.Split(secret, "_")
	if len(parts) != 3 || parts[0] != "fl" {
		return "", false
	}
	return parts[1], isKeyID(parts[1]) && !strings.ContainsFunc(parts[2], isNotBase32)
}

// isKeyID tells whether a key can have this id.
func isKeyID(s string) bool {
	return len(s) >= 8 && len(s) <= 16 && !strings.ContainsFunc(s, isNotBase32)
}

func isNotBase32(r rune) bool { return !strings.ContainsRune(base32Alphabet, r) }
