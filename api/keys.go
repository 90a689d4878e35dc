package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrUnauthenticated reports that a secret is missing, unknown, expired or
// revoked; which of these is nobody's business.
var ErrUnauthenticated = errors.New("unauthenticated")

// Key is an API key without its secret.
type Key struct {
	ID        string
	Name      string // what people call it
	Role      Role
	Pattern   Pattern
	CreatedAt time.Time
	ExpiresAt *time.Time // nil: never
}

// NewKey describes a key to be made.
type NewKey struct {
	Name    string // 1 to 200 printable characters
	Role    Role
	Pattern Pattern
}

const (
	maxKeyNameLength = 200
	keyIDBytes       = 10 // 16 characters: collisions do not happen
	keySecretBytes   = 20 // 160 bits
)

// Keys keeps the API keys in the table api_key: of each secret only its hash.
// A plain SHA-256 will do, since a secret has 160 random bits.
type Keys struct {
	pool *pgxpool.Pool
}

// NewKeys makes Keys of a database.
func NewKeys(pool *pgxpool.Pool) *Keys {
	return &Keys{pool: pool}
}

// Create makes a key and returns it with its secret, `fl_<id>_<random>`, which
// is shown this once and cannot be found out later.
func (k *Keys) Create(ctx context.Context, n NewKey) (Key, string, error) {
	if err := n.check(); err != nil {
		return Key{}, "", err
	}
	id := randomBase32(keyIDBytes)
	secret := "fl_" + id + "_" + randomBase32(keySecretBytes)

	const query = `SELECT status FROM create_key(@key_id, @hash, @name, @role, @pattern)`
	hash := sha256.Sum256([]byte(secret))
	rows, err := k.pool.Query(ctx, query, pgx.NamedArgs{
		"key_id": id, "hash": hash[:], "name": n.Name, "role": string(n.Role), "pattern": string(n.Pattern),
	})
	if err != nil {
		return Key{}, "", fmt.Errorf("create key %q: %w", n.Name, err)
	}
	status, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
	if err != nil {
		return Key{}, "", fmt.Errorf("create key %q: %w", n.Name, err)
	}
	if status != "created" {
		return Key{}, "", fmt.Errorf("create key %q: %s", n.Name, status)
	}
	key, err := k.Authenticate(ctx, secret)
	return key, secret, err
}

// Authenticate finds the key that a secret belongs to, or ErrUnauthenticated.
// Any other error says that the database could not be asked.
func (k *Keys) Authenticate(ctx context.Context, secret string) (Key, error) {
	id, ok := keyID(secret)
	if !ok {
		return Key{}, ErrUnauthenticated
	}

	const query = `
		SELECT key_id AS id, hash, name, role, pattern, created_at, expires_at
		FROM api_key
		WHERE key_id = @key_id
			AND revoked_at IS NULL
			AND (expires_at IS NULL OR expires_at > fenceline_now())`
	type row struct {
		Key
		Hash []byte
	}
	rows, err := k.pool.Query(ctx, query, pgx.NamedArgs{"key_id": id})
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
	hash := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(hash[:], found.Hash) != 1 {
		return Key{}, ErrUnauthenticated
	}
	return found.Key, nil
}

// check refuses what a key cannot be, in words for whoever typed it.
func (n NewKey) check() error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	length := utf8.RuneCountInString(n.Name)
	if length < 1 || length > maxKeyNameLength || !utf8.ValidString(n.Name) || strings.ContainsFunc(n.Name, unprintable) {
		return fmt.Errorf("name %q: want 1 to %d printable characters", n.Name, maxKeyNameLength)
	}
	if _, err := ParseRole(string(n.Role)); err != nil {
		return err
	}
	_, err := ParsePattern(string(n.Pattern))
	return err
}

// keyID is the id inside a secret of the right form.
func keyID(secret string) (string, bool) {
	parts := strings.Split(secret, "_")
	if len(parts) != 3 || parts[0] != "fl" || len(parts[1]) < 8 || len(parts[1]) > 16 {
		return "", false
	}
	foreign := func(r rune) bool { return !strings.ContainsRune(base32Alphabet, r) }
	return parts[1], !strings.ContainsFunc(parts[1]+parts[2], foreign)
}

const base32Alphabet = "abcdefghijklmnopqrstuvwxyz234567"

func randomBase32(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails: it would end the program
	return base32.NewEncoding(base32Alphabet).WithPadding(base32.NoPadding).EncodeToString(random)
}
