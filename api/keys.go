package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
)

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
	Life    time.Duration // one second to ten years; zero: without end
}

const (
	maxKeyNameLength = 200
	minKeyLife       = time.Second
	maxKeyLife       = 10 * 365 * 24 * time.Hour
	keyIDBytes       = 10 // 16 characters: collisions do not happen
	keySecretBytes   = 20 // 160 bits
)

// Check refuses what a key cannot be, in words for whoever typed it.
func (n NewKey) Check() error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	length := utf8.RuneCountInString(n.Name)
	if length < 1 || length > maxKeyNameLength || !utf8.ValidString(n.Name) || strings.ContainsFunc(n.Name, unprintable) {
		return fmt.Errorf("name %q: want 1 to %d printable characters", n.Name, maxKeyNameLength)
	}
	if n.Life != 0 && (n.Life < minKeyLife || n.Life > maxKeyLife) {
		return fmt.Errorf("life %s: want %s to ten years", n.Life, minKeyLife)
	}
	if _, err := ParseRole(string(n.Role)); err != nil {
		return err
	}
	_, err := ParsePattern(string(n.Pattern))
	return err
}

// Keys keeps the API keys in the table api_key: of each secret only its hash.
// A plain SHA-256 will do, since a secret has 160 random bits.
type Keys struct {
	pool *pgxpool.Pool
	log  *slog.Logger

	// notesPausedUntil is when uses are noted again after a note has failed, in
	// nanoseconds of this process's clock.
	notesPausedUntil atomic.Int64
}

// NewKeys makes Keys of a database. log is told of uses that could not be noted;
// nil means slog.Default().
func NewKeys(pool *pgxpool.Pool, log *slog.Logger) *Keys {
	if log == nil {
		log = slog.Default()
	}
	return &Keys{pool: pool, log: log}
}

// Create makes a key and returns it with its secret, `fl_<id>_<random>`, which
// is shown this once and cannot be found out later. Errors: those of
// [NewKey.Check]; database.ErrUnavailable, after which a key may have been made
// whose secret nobody knows.
func (k *Keys) Create(ctx context.Context, n NewKey) (Key, string, error) {
	if err := n.Check(); err != nil {
		return Key{}, "", err
	}
	const query = `
		SELECT status, created_at, expires_at
		FROM create_key(@key_id, @hash, @name, @role, @pattern, @life_ms)`
	type answer struct {
		Status    string
		CreatedAt *time.Time
		ExpiresAt *time.Time
	}
	var life *int64
	if n.Life != 0 {
		life = new(n.Life.Milliseconds())
	}
	id, secret := newSecret()
	got, err := database.Change[answer](ctx, k.pool, query, pgx.NamedArgs{
		"key_id": id, "hash": hashOf(secret), "name": n.Name, "role": string(n.Role), "pattern": string(n.Pattern), "life_ms": life,
	})
	if err != nil {
		return Key{}, "", fmt.Errorf("create key %q: %w", n.Name, err)
	}
	if got.Status != "created" {
		return Key{}, "", fmt.Errorf("create key %q: %s", n.Name, got.Status)
	}
	key := Key{
		ID: id, Name: n.Name, Role: n.Role, Pattern: n.Pattern, CreatedAt: *got.CreatedAt, ExpiresAt: got.ExpiresAt,
	}
	return key, secret, nil
}

// newSecret draws a secret, and the id in it.
func newSecret() (id, secret string) {
	id = randomBase32(keyIDBytes)
	return id, "fl_" + id + "_" + randomBase32(keySecretBytes)
}

// hashOf is what is stored of a secret.
func hashOf(secret string) []byte {
	hash := sha256.Sum256([]byte(secret))
	return hash[:]
}

const base32Alphabet = "abcdefghijklmnopqrstuvwxyz234567"

func randomBase32(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails: it would end the program
	return base32.NewEncoding(base32Alphabet).WithPadding(base32.NoPadding).EncodeToString(random)
}
