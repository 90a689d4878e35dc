package main

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/migrations"
	"github.com/fenceline/fenceline/staging"
)

// stores are a database and a bucket, opened by a command that works on them itself.
type stores struct {
	pool   *pgxpool.Pool
	bucket *staging.Bucket
}

// openStores opens both, with so many connections to the database at most; it asks neither of them anything. Whoever
// opens them closes them.
func openStores(ctx context.Context, d databaseSettings, s storageSettings, connections int32, log *slog.Logger) (stores, error) {
	pool, err := database.Open(ctx, d.config(poolSettings{DatabasePool: connections}))
	if err != nil {
		return stores{}, usageError{err}
	}
	storage := s.config()
	storage.Log = log
	bucket, err := staging.OpenBucket(ctx, storage)
	if err != nil {
		pool.Close()
		return stores{}, usageError{err}
	}
	return stores{pool, bucket}, nil
}

func (s stores) close() { s.pool.Close() }

// ready tells whether the program may work on the database: its schema fits, and its identity is verified.
func (s stores) ready(ctx context.Context) error {
	if err := migrations.Fits(ctx, s.pool); err != nil {
		return err
	}
	_, _, err := lease.New(s.pool).VerifyEpoch(ctx)
	return err
}
