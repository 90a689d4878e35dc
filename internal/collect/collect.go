// Package collect fills a database and a bucket with any number of objects that are due, lets the real collector loose on
// them, kills it on the way while publishers go on publishing, and tells how fast it was, what it needed, and whether
// exactly what was due is gone, by the rows and by the bucket.
package collect

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/staging"
)

// Config says how much to make, and where. The database must be migrated and verified, and hold no reports; the bucket
// must be empty.
type Config struct {
	OwnerURL string               // of the database, to write rows past the functions, and to look at it
	Storage  staging.BucketConfig // credentials come from the environment
	Service  client.Config        // with a worker's key; its collector must be off

	Program string   // the path of fenceline
	Env     []string // of `fenceline gc run`: a short grace, and a brake that holds nothing back

	Objects    int // how many are due
	Foreign    int // keys that are none of ours, half of them under reports/
	Unknown    int // keys of ours that no row knows
	Publishers int
	Kills      int           // how often the collector is killed
	Quiet      time.Duration // how long publishers publish before the collector begins

	Memory int64   // what the collector may have in use at its peak, in bytes; 0: not judged
	Spread float64 // by which share the last objects may go slower than the first; 0: not judged

	Tell   func(string)                // is told how far it is; nil: nobody is
	Killed func(context.Context) error // runs after each kill; nil: nothing does
}

// Field is a database and a bucket that were filled.
type Field struct {
	Config
	pool    *pgxpool.Pool
	bucket  *staging.Bucket
	service *client.Client
	http    *http.Client
	epoch   int32
	began   time.Time // when the first object was reserved, by the database's clock
	now     time.Time // when the field was made, by that clock
	layout  layout

	published []published // what was acknowledged

	mu     sync.Mutex // of what is written down as broken
	result Result
}

// Prepare fills the database and the bucket. Close the field when done.
func Prepare(ctx context.Context, cfg Config) (*Field, error) {
	f := &Field{Config: cfg, service: client.New(cfg.Service), layout: layoutOf(cfg.Objects)}
	f.result.Objects, f.result.Foreign, f.result.Unknown, f.result.Kept = cfg.Objects, cfg.Foreign, cfg.Unknown, f.layout.reports
	f.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: inFlight}, Timeout: patience}
	var err error
	if f.bucket, err = staging.OpenBucket(ctx, cfg.Storage); err != nil {
		return nil, err
	}
	if f.pool, err = database.Open(ctx, database.Config{URL: cfg.OwnerURL, Pool: inFlight + 2, Name: "fenceline-collect"}); err != nil {
		return nil, err
	}
	if err := f.fill(ctx); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill the database and the bucket: %w", err)
	}
	return f, nil
}

// Close lets go of the database.
func (f *Field) Close() { f.pool.Close() }

// Run lets the collector collect while publishers publish, and looks at what is left. What did not go as it must is in
// the result; an error is that of an experiment that could not be made.
func (f *Field) Run(ctx context.Context) (Result, error) {
	if err := f.Collect(ctx); err != nil {
		return f.result, err
	}
	return f.Judge(ctx)
}

func (f *Field) tell(format string, args ...any) {
	if f.Tell != nil {
		f.Tell(fmt.Sprintf(format, args...))
	}
}

// patience is how long nothing may move: longer than a pass takes to be written off, and the grace.
const patience = 2 * time.Minute
