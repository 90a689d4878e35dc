package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/time/rate"

	"github.com/fenceline/fenceline/internal/metrics"
	"github.com/fenceline/fenceline/staging"
)

// Config says how the collector works. The zero value of every field is the default named beside it.
type Config struct {
	// PurgeGrace is how long the bytes of a condemned object stay, counted from the later of its
	// condemnation and the end of its last upload URL. Default 24 h.
	PurgeGrace time.Duration
	// Tombstones is how long the rows of deleted objects, and the records of passes, are kept. Default 90 days.
	Tombstones time.Duration
	// Leases is how long the records of ended leases are kept. Default 30 days.
	Leases time.Duration
	// Refusals is how long refusals for a fence are kept after the last one. Default 30 days.
	Refusals time.Duration

	// Of the objects that were never published, at most this share (of number and of bytes), though at
	// least BrakeMin of them, is condemned within BrakeWindow; what is due beyond that is held back until Approve.
	// A share of 1 releases the brake. Default 0.2, 20 and 24 h.
	BrakeShare  float64
	BrakeMin    int64
	BrakeWindow time.Duration

	// ReportFirst has the passes of an installation where nothing was collected yet only report, until Approve of one of them.
	ReportFirst bool
	// TimeLimit ends a pass at the next batch once it has gone on for so long; the next pass goes on. Default none.
	TimeLimit time.Duration
	// ScanEvery is how old the last complete scan of the bucket may be before a pass by schedule scans again; ScanAlways,
	// ScanNever. Default 24 h.
	ScanEvery time.Duration
	// Unknown is how long an object is kept that a scan has found and no row knew. Default 14 days.
	Unknown time.Duration
	// Staged is how long unfinished uploads under what is sealed are spared. Default 24 h.
	Staged time.Duration

	// Batch is how many objects one transaction, or one delete request, handles: at most
	// staging.MaxDeletes. Default 500.
	Batch int
	// Pace is how many objects a second are deleted at most. Default: as many as the storage manages.
	Pace int
	// Silence is how long a pass may not move before another takes its place. Default 30 s.
	Silence time.Duration
	// Schedule says when a pass begins by itself: five cron fields, in UTC unless CRON_TZ=ZONE
	// stands before them, or "@every 1h". Default none.
	Schedule string
	// Metrics counts what passes did. Default: nobody does.
	Metrics *metrics.Metrics
	// Log receives what passes did. Default slog.Default().
	Log *slog.Logger

	atOnce int                                        // how many objects one delete request names: a batch, or what the pace allows in a second
	pace   pace                                       // keeps to Pace
	wait   func(context.Context, time.Duration) error // waits while the storage throttles
}

// pace holds up whoever wants to delete n objects more, as long as it takes.
type pace interface {
	WaitN(ctx context.Context, n int) error
}

// bucket is what the collector needs of the storage.
type bucket interface {
	// Delete removes the bytes of up to staging.MaxDeletes objects, and answers for each. beforeSend runs
	// after the request was signed; its error stops it.
	Delete(ctx context.Context, refs []staging.ObjectRef, beforeSend func(context.Context) error) ([]staging.DeleteResult, error)
	// Versions lists every version of a key.
	Versions(ctx context.Context, key string) ([]staging.ObjectRef, error)
	// Uploads lists the unfinished uploads in parts under a prefix.
	Uploads(ctx context.Context, prefix string) iter.Seq2[[]staging.UploadRef, error]
	// AbortUpload ends one of them. beforeSend is as in Delete.
	AbortUpload(ctx context.Context, key, uploadID string, beforeSend func(context.Context) error) error
	// AbortUploads ends those of one key.
	AbortUploads(ctx context.Context, key string, beforeSend func(context.Context) error) error
}

// storage is all that the collector needs of it.
type storage interface {
	bucket
	lister
}

// Collector collects. Any number may work on one database: at most one pass is under way.
type Collector struct {
	pool   *pgxpool.Pool
	bucket storage
	cfg    Config
	log    *slog.Logger
	begun  chan *Pass
}

// ErrAlreadyRunning reports that a pass is under way.
var ErrAlreadyRunning = errors.New("a pass of the collector is under way")

// ErrRunNotFound reports that there is no such run, or that it was forgotten.
var ErrRunNotFound = errors.New("there is no such run")

// ErrTimeLimit reports that a pass was ended by its time limit.
var ErrTimeLimit = errors.New("the pass has reached its time limit")

// ErrRunEnded reports that a pass was written off because it had not moved for too long.
var ErrRunEnded = errors.New("the pass was written off while it paused")

// AlreadyRunningError says which run is under way. It is ErrAlreadyRunning.
type AlreadyRunningError struct{ RunID int64 }

// Error tells the run.
func (e *AlreadyRunningError) Error() string {
	return fmt.Sprintf("%v: run %d", ErrAlreadyRunning, e.RunID)
}

// Is makes it ErrAlreadyRunning.
func (e *AlreadyRunningError) Is(target error) bool { return target == ErrAlreadyRunning }

// New makes a collector of a database and a bucket. Nothing runs before Serve, or the Run of a Pass.
func New(pool *pgxpool.Pool, b storage, cfg Config) *Collector {
	const day = 24 * time.Hour
	cfg.PurgeGrace = cmp.Or(cfg.PurgeGrace, day)
	cfg.Tombstones = cmp.Or(cfg.Tombstones, 90*day)
	cfg.Leases = cmp.Or(cfg.Leases, 30*day)
	cfg.Refusals = cmp.Or(cfg.Refusals, 30*day)
	cfg.BrakeShare = cmp.Or(cfg.BrakeShare, 0.2)
	cfg.BrakeMin = cmp.Or(cfg.BrakeMin, 20)
	cfg.BrakeWindow = cmp.Or(cfg.BrakeWindow, day)
	cfg.ScanEvery = cmp.Or(cfg.ScanEvery, day)
	cfg.Unknown = cmp.Or(cfg.Unknown, 14*day)
	cfg.Staged = cmp.Or(cfg.Staged, day)
	cfg.Batch = min(cmp.Or(cfg.Batch, 500), staging.MaxDeletes)
	cfg.Silence = cmp.Or(cfg.Silence, 30*time.Second)
	cfg.atOnce = cfg.Batch
	limit := rate.Inf
	if cfg.Pace > 0 {
		limit, cfg.atOnce = rate.Limit(cfg.Pace), min(cfg.Batch, cfg.Pace)
	}
	if cfg.pace == nil {
		cfg.pace = rate.NewLimiter(limit, cfg.atOnce)
	}
	if cfg.wait == nil {
		cfg.wait = wait
	}
	return &Collector{
		pool: pool, bucket: b, cfg: cfg, log: cmp.Or(cfg.Log, slog.Default()), begun: make(chan *Pass, 1),
	}
}
