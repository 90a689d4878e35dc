package api

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// KeyState says whether a key opens anything.
type KeyState string

// The states of a key. The last two are final.
const (
	KeyActive  KeyState = "active"
	KeyExpired KeyState = "expired"
	KeyRevoked KeyState = "revoked" // also where it has expired as well
)

// ListedKey is a key, and what has become of it.
type ListedKey struct {
	Key
	RevokedAt  *time.Time // from then on it opens nothing; may be to come, after a rotation
	LastUsedAt *time.Time // to the minute; nil: never
	State      KeyState   // as of now, by the database's clock
}

// List lists all keys, those that have ended too, the newest first.
// Errors: database.ErrUnavailable.
func (k *Keys) List(ctx context.Context) ([]ListedKey, error) {
	const query = `
		SELECT key_id AS id, name, role, pattern, created_at, expires_at, revoked_at, last_used_at,
			CASE
				WHEN revoked_at <= fenceline_now() THEN 'revoked'
				WHEN expires_at <= fenceline_now() THEN 'expired'
				ELSE 'active'
			END AS state
		FROM api_key
		ORDER BY created_at DESC, key_id`
	found, err := database.Rows[ListedKey](ctx, k.pool, query, pgx.NamedArgs{})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return found, nil
}
