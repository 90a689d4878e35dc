// Package service puts the parts together into the program that `fenceline serve` runs: the grant authority,
// the staging area, the catalog, the collector and the HTTP routes, on one database and one bucket.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/metrics"
	"github.com/fenceline/fenceline/internal/schedule"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/migrations"
	"github.com/fenceline/fenceline/staging"
)

// Config is the configuration of every part. The zero value of each is what its own package says.
type Config struct {
	Database  database.Config
	Bucket    staging.BucketConfig
	Objects   staging.Config
	Catalog   catalog.Config
	Collector gc.Config
	Verifier  verify.Config
	API       api.Config // of which the parts, Authenticate and Ready are filled in here

	// Listen is the TCP address that Run listens on. Default 127.0.0.1:8080.
	Listen string

	// Metrics has the service count what it does, and serve it at /metrics, open to all. What the parts are given
	// to count with is filled in here.
	Metrics bool

	// AllowOverwrites lets the service start on a storage that ignores If-None-Match: *, where nothing keeps
	// the bytes of a key from being written twice. It is shown as a warning for as long as it lasts.
	AllowOverwrites bool

	// Log receives what happens. Default slog.Default().
	Log *slog.Logger
}

// Service is the assembled program.
type Service struct {
	Pool      *pgxpool.Pool
	Bucket    *staging.Bucket
	Leases    *lease.Authority
	Objects   *staging.Area
	Catalog   *catalog.Catalog
	Collector *gc.Collector
	Verifier  *verify.Verifier
	Keys      *api.Keys

	cfg     Config
	log     *slog.Logger
	metrics *metrics.Metrics // nil where nothing is counted
}

// Open assembles the parts. It sends nothing anywhere; an error is one of the configuration. The caller closes
// the service.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	for _, text := range []string{cfg.Collector.Schedule, cfg.Verifier.Schedule} {
		if text == "" {
			continue
		}
		if err := schedule.Parse(text); err != nil {
			return nil, err
		}
	}
	pool, err := database.Open(ctx, cfg.Database)
	if err != nil {
		return nil, err
	}
	s := &Service{Pool: pool, cfg: cfg, log: cmp.Or(cfg.Log, slog.Default())}
	if cfg.Metrics {
		s.metrics = metrics.New(s.measured())
	}
	cfg.Bucket.Metrics, cfg.Collector.Metrics = s.metrics, s.metrics
	cfg.Bucket.Log, cfg.Collector.Log = s.log, s.log
	cfg.Verifier.Log = s.log
	bucket, err := staging.OpenBucket(ctx, cfg.Bucket)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.Bucket = bucket
	s.Leases = lease.New(pool)
	s.Objects = staging.New(pool, bucket, cfg.Objects)
	s.Catalog = catalog.New(pool, func(ctx context.Context, name fencing.ObjectName) error {
		_, err := s.Objects.Seal(ctx, name)
		return err
	}, cfg.Catalog)
	s.Collector = gc.New(pool, bucket, cfg.Collector)
	s.Verifier = verify.New(pool, bucket, cfg.Verifier)
	s.Keys = api.NewKeys(pool, s.log)
	return s, nil
}

// Close gives the connections back.
func (s *Service) Close() { s.Pool.Close() }

// Check refuses to go on where the service could not keep its promises: on a schema that does not fit, a
// database whose identity cannot be verified, or a storage that overwrites. It returns what an operator
// should be warned of.
func (s *Service) Check(ctx context.Context) (warnings []string, err error) {
	if err := migrations.Fits(ctx, s.Pool); err != nil {
		return nil, err
	}
	epoch, advanced, err := s.Leases.VerifyEpoch(ctx)
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "the database's identity is verified", "epoch", epoch, "new_epoch", advanced)

	changed, err := s.Catalog.SetDefaults(ctx)
	if err != nil {
		return nil, err
	}
	if changed {
		s.log.WarnContext(ctx, "the defaults of the reports' settings are those of this instance from now on, for all instances")
	}

	writes, err := database.MayWrite(ctx, s.Pool)
	if err != nil {
		return nil, err
	}
	if writes {
		warnings = append(warnings, "the service is connected with a role that may write to the tables past the functions: use fenceline_service, or a member of it")
	}
	err = s.Bucket.ProbeConditionalCreate(ctx)
	if errors.Is(err, staging.ErrOverwrites) && s.cfg.AllowOverwrites {
		warnings = append(warnings, "the storage ignores If-None-Match: *, and nothing keeps the bytes of a key from being written twice")
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("check the storage: %w", err)
	}
	if err := staging.Claim(ctx, s.Pool, s.Bucket); err != nil {
		return nil, err
	}
	for _, w := range warnings {
		s.log.WarnContext(ctx, w)
	}
	return warnings, nil
}

// checkTimeout bounds the checks before the service listens.
const checkTimeout = time.Minute

// Run listens, checks, and serves until ctx ends: whoever connects before the checks have passed waits. Then what is
// in flight is finished, and last the collector and the verifier stop where they are.
func (s *Service) Run(ctx context.Context) error {
	var lc net.ListenConfig
	address := cmp.Or(s.cfg.Listen, "127.0.0.1:8080")
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	return s.Serve(ctx, listener)
}

// Serve is Run on a listener that is there already, and which it closes.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	checking, cancel := context.WithTimeout(ctx, checkTimeout)
	warnings, err := s.Check(checking)
	cancel()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	// The parts in the background outlive the last request.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var watching sync.WaitGroup
	watching.Go(func() { s.Leases.WatchEpoch(background, s.log) })
	watching.Go(func() { s.Leases.Listen(background, s.log) })
	watching.Go(func() { s.Catalog.Watch(background, s.log) })
	watching.Go(func() {
		if err := catalog.SettleDefaults(background, s.Pool); err != nil && background.Err() == nil {
			s.log.WarnContext(background, "the next pass of the collector goes on with it", "error", err)
		}
	})
	collecting := make(chan error, 1)
	go func() { collecting <- s.Collector.Serve(background) }()
	verifying := make(chan error, 1)
	go func() { verifying <- s.Verifier.Serve(background) }()

	err = s.handler(warnings).Serve(ctx, listener)
	stop()
	watching.Wait()
	return errors.Join(err, <-collecting, <-verifying)
}

// handler makes the HTTP side.
func (s *Service) handler(warnings []string) *api.Server {
	cfg := s.cfg.API
	cfg.Leases, cfg.Objects, cfg.Catalog, cfg.Collector, cfg.Verifier = s.Leases, s.Objects, s.Catalog, s.Collector, s.Verifier
	cfg.Authenticate, cfg.Metrics = s.Keys.Authenticate, s.metrics
	cfg.Log, cfg.Warnings = s.log, append(warnings, cfg.Warnings...)
	cfg.Ready = []api.Check{
		{Name: "schema", Works: func(ctx context.Context) error { return migrations.Fits(ctx, s.Pool) }},
		{Name: "database", Works: func(ctx context.Context) error {
			epoch, err := s.Leases.Epoch(ctx)
			if err == nil && !epoch.Verified {
				err = database.ErrEpochInDoubt
			}
			return err
		}},
	}
	return api.New(cfg)
}
