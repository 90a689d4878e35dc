// Package verify looks whether the bytes of everything that the catalog shows are in the storage as they were published: those
// of every visible version, and of every older one that can still be downloaded. It repairs nothing, deletes nothing, and writes
// nothing to the bucket: what is not as it should be is told.
package verify

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/staging"
)

// Config says how a verifier works. The zero value of every field is the default named beside it.
type Config struct {
	// Concurrency is how many objects are looked at side by side. Default 8.
	Concurrency int
	// Pace is how many objects a second are looked at, at most. Default: as many as the storage answers for.
	Pace float64
	// Silence is how long a run may not move before another takes its place. Default 15 s.
	Silence time.Duration
	// Patience is the wait before the storage is asked again that had no answer, twice as long each time. Default 500 ms.
	Patience time.Duration
	// Keep is how long the records of runs, and what they found, are kept. Default 90 days.
	Keep time.Duration
	// Schedule says when a run begins by itself that reads no bytes: see [schedule.Parse]. Default none.
	Schedule string
	// Log receives what runs found. Default slog.Default().
	Log *slog.Logger
}

// Verifier verifies. Any number may work on one database: at most one run of each kind, with and without reading the bytes,
// is under way.
type Verifier struct {
	pool   *pgxpool.Pool
	bucket *staging.Bucket
	cfg    Config
	log    *slog.Logger
	begun  chan *Run
}

// ErrAlreadyRunning reports that a run of the kind is under way.
var ErrAlreadyRunning = errors.New("a verification is under way")

// ErrNotFound reports that there is no such run, or that its record was forgotten.
var ErrNotFound = errors.New("there is no such verification")

// ErrRunEnded reports that a run was written off because it had not moved for too long.
var ErrRunEnded = errors.New("the verification was written off while it paused")

// AlreadyRunningError says which run is under way. It is ErrAlreadyRunning.
type AlreadyRunningError struct{ VerificationID int64 }

// Error tells the run.
func (e *AlreadyRunningError) Error() string {
	return fmt.Sprintf("%v: number %d", ErrAlreadyRunning, e.VerificationID)
}

// Is makes it ErrAlreadyRunning.
func (e *AlreadyRunningError) Is(target error) bool { return target == ErrAlreadyRunning }

// New makes a verifier of what a catalog shows and its bucket holds. Nothing runs before Serve, or the Run of a Run.
func New(pool *pgxpool.Pool, b *staging.Bucket, cfg Config) *Verifier {
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 8)
	cfg.Silence = cmp.Or(cfg.Silence, 15*time.Second)
	cfg.Patience = cmp.Or(cfg.Patience, 500*time.Millisecond)
	cfg.Keep = cmp.Or(cfg.Keep, 90*24*time.Hour)
	return &Verifier{pool: pool, bucket: b, cfg: cfg, log: cmp.Or(cfg.Log, slog.Default()), begun: make(chan *Run, 2)}
}
