package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// ErrKeyNotFound reports that no key has the id.
var ErrKeyNotFound = errors.New("no such key")

// ErrKeyEnded reports that a key has expired or is revoked, so that there is
// nothing to rotate: whoever is to go on gets a new key.
var ErrKeyEnded = errors.New("the key has ended")

// KeyID is the id of the key that s names, by its id or by its whole secret: the
// latter is what one has at hand when a secret was found where it does not
// belong. It is empty for what has neither form: that may be a secret too, and
// must not show in an error.
func KeyID(s string) string {
	if tail, ok := strings.CutPrefix(s, "fl_"); ok {
		s, _, _ = strings.Cut(tail, "_")
	}
	if !isKeyID(s) {
		return ""
	}
	return s
}

// Revoke ends a key now, and tells when it ended: before now, if it had ended
// already. Requests that were authenticated with it before finish. Repeating it
// changes nothing. Errors: ErrKeyNotFound, database.ErrUnavailable.
func (k *Keys) Revoke(ctx context.Context, id string) (endedAt time.Time, err error) {
	endedAt, err = k.end(ctx, id, 0)
	if err != nil {
		return time.Time{}, fmt.Errorf("revoke key %q: %w", id, err)
	}
	return endedAt, nil
}

// Rotate replaces a key: it makes one with the same name, role, pattern and life
// (which begins anew), hands it with its secret to deliver, and only when that
// has returned without an error ends the old key after the overlap (0 to ten
// years), or when it would have ended anyway. It returns when that is. So
// wherever it is interrupted, there is a key that opens: until the new secret has
// been delivered the old key is as it was. Errors: ErrKeyNotFound, ErrKeyEnded,
// what deliver returned, database.ErrUnavailable.
func (k *Keys) Rotate(ctx context.Context, id string, overlap time.Duration, deliver func(Key, string) error) (endsAt time.Time, err error) {
	if overlap < 0 || overlap > maxKeyLife {
		return time.Time{}, fmt.Errorf("rotate key %q: overlap %s: want 0s to ten years", id, overlap)
	}
	key, secret, err := k.copy(ctx, id)
	if err != nil {
		return time.Time{}, fmt.Errorf("rotate key %q: %w", id, err)
	}
	if err := deliver(key, secret); err != nil {
		return time.Time{}, fmt.Errorf("rotate key %q: it goes on, since its successor %s was not delivered: %w", id, key.ID, err)
	}
	endsAt, err = k.end(ctx, id, overlap)
	if err != nil {
		return time.Time{}, fmt.Errorf("rotate key %q: %s is its successor, but it may go on itself: %w", id, key.ID, err)
	}
	return endsAt, nil
}

// copy makes a key like the one with the id.
func (k *Keys) copy(ctx context.Context, id string) (Key, string, error) {
	if !isKeyID(id) {
		return Key{}, "", ErrKeyNotFound
	}
	const query = `
		SELECT status, name, role, pattern, created_at, expires_at
		FROM copy_key(@old_id, @key_id, @hash)`
	type answer struct {
		Status    string
		Name      *string
		Role      *Role
		Pattern   *Pattern
		CreatedAt *time.Time
		ExpiresAt *time.Time
	}
	newID, secret := newSecret()
	got, err := database.Change[answer](ctx, k.pool, query, pgx.NamedArgs{"old_id": id, "key_id": newID, "hash": hashOf(secret)})
	if err != nil {
		return Key{}, "", err
	}
	switch got.Status {
	case "created":
		key := Key{
			ID: newID, Name: *got.Name, Role: *got.Role, Pattern: *got.Pattern, CreatedAt: *got.CreatedAt, ExpiresAt: got.ExpiresAt,
		}
		return key, secret, nil
	case "key_not_found":
		return Key{}, "", ErrKeyNotFound
	case "key_ended":
		return Key{}, "", ErrKeyEnded
	default:
		return Key{}, "", fmt.Errorf("copy_key answered %q", got.Status)
	}
}

// end gives a key its end, some time from now, unless it has an earlier one.
func (k *Keys) end(ctx context.Context, id string, after time.Duration) (time.Time, error) {
	if !isKeyID(id) {
		return time.Time{}, ErrKeyNotFound
	}
	const query = `SELECT status, ends_at FROM revoke_key(@key_id, @after_ms)`
	type answer struct {
		Status string
		EndsAt *time.Time
	}
	got, err := database.Change[answer](ctx, k.pool, query, pgx.NamedArgs{"key_id": id, "after_ms": after.Milliseconds()})
	if err != nil {
		return time.Time{}, err
	}
	switch got.Status {
	case "revoked":
		return *got.EndsAt, nil
	case "key_not_found":
		return time.Time{}, ErrKeyNotFound
	default:
		return time.Time{}, fmt.Errorf("revoke_key answered %q", got.Status)
	}
}
