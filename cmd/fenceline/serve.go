package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/migrations"
	"github.com/fenceline/fenceline/staging"
)

// serveCmd runs the service.
type serveCmd struct {
	databaseSettings
	poolSettings
	storageSettings
	retentionSettings
	reportSettings
	collectorSettings
	verifySettings
	limitSettings
	logSettings

	VerifySchedule     string `default:"17 3 * * *" env:"FENCELINE_VERIFY_SCHEDULE" help:"When it is verified that the bytes of what is shown are there: as --gc-schedule. They are not read."`
	Listen             string `default:"127.0.0.1:8080" env:"FENCELINE_LISTEN" help:"TCP address to listen on."`
	Metrics            bool   `env:"FENCELINE_METRICS" help:"Serve /metrics, open to all who reach the port."`
	Migrate            bool   `env:"FENCELINE_MIGRATE" help:"Bring the schema up before serving."`
	MigrateDatabaseURL string `env:"FENCELINE_MIGRATE_DATABASE_URL" placeholder:"URL" help:"The owner's PostgreSQL URL, for --migrate. None: --database-url."`
	S3AllowOverwrites  bool   `name:"s3-allow-overwrites" env:"FENCELINE_S3_ALLOW_OVERWRITES" help:"Start although the storage ignores If-None-Match: *."`
}

// Run serves until a signal ends ctx.
func (c *serveCmd) Run(ctx context.Context) error {
	for _, check := range []func() error{
		func() error { return c.retentionSettings.check(&c.limitSettings) },
		func() error { return c.collectorSettings.check(c.retentionSettings) },
		c.verifySettings.check,
		c.poolSettings.check,
		c.reportSettings.check,
		func() error { return c.check(ctx) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if c.Migrate {
		url := c.MigrateDatabaseURL
		if url == "" {
			url = c.DatabaseURL
		}
		if _, err := migrations.Up(ctx, url); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
	s, err := service.Open(ctx, c.config())
	if err != nil {
		return usageError{err}
	}
	defer s.Close()
	return s.Run(ctx)
}

func (c *serveCmd) config() service.Config {
	collector := c.collectorSettings.config(c.retentionSettings)
	if c.GCSchedule != scheduleOff {
		collector.Schedule = c.GCSchedule
	}
	verifier := c.verifySettings.config()
	if c.VerifySchedule != scheduleOff {
		verifier.Schedule = c.VerifySchedule
	}
	return service.Config{
		Listen:    c.Listen,
		Database:  c.databaseSettings.config(c.poolSettings),
		Bucket:    c.storageSettings.config(),
		Objects:   c.retentionSettings.objects(c.S3Prefix),
		Catalog:   c.retentionSettings.catalog(c.reportSettings),
		Collector: collector,
		Verifier:  verifier,
		API: api.Config{
			RequestTimeout: c.RequestTimeout, ShutdownTimeout: c.ShutdownTimeout,
			LongestLease: c.LeaseTTLMax, Version: programVersion(),
		},
		Metrics:         c.Metrics,
		AllowOverwrites: c.S3AllowOverwrites,
		Log:             c.logger(),
	}
}

func (s retentionSettings) catalog(r reportSettings) catalog.Config {
	above := s.RestoreWindow
	if !s.AllowShortRetention {
		above = max(above, shortRetention-time.Millisecond)
	}
	return catalog.Config{
		Fencing: r.Fencing, PublishesPerGrant: r.PublishesPerGrant, KeepVersions: r.KeepVersions,
		Retention: s.RetentionSuperseded, RetentionAbove: above, RetentionBelow: s.RetentionTombstones, PurgeGrace: s.PurgeGrace,
	}
}

func (s retentionSettings) objects(prefix string) staging.Config {
	return staging.Config{
		Prefix: prefix, UploadURLLife: s.UploadURLLife, DownloadURLLife: s.DownloadURLLife,
		Retention: s.RetentionStaged, PurgeGrace: s.PurgeGrace,
	}
}

func (s verifySettings) config() verify.Config {
	return verify.Config{Concurrency: s.VerifyConcurrency, Pace: s.VerifyPace}
}

func (s collectorSettings) config(r retentionSettings) gc.Config {
	return gc.Config{
		PurgeGrace: r.PurgeGrace, Tombstones: r.RetentionTombstones, Leases: r.RetentionLeases, Refusals: r.RetentionRefusals,
		BrakeShare: s.GCBrakeShare, BrakeMin: s.GCBrakeMin, BrakeWindow: s.GCBrakeWindow,
		ReportFirst: s.GCFirstRun == "report", TimeLimit: s.GCTimeLimit,
		ScanEvery: time.Duration(s.GCScanEvery), Unknown: r.RetentionUnknown, Staged: r.RetentionStaged,
		Pace: s.GCPace,
	}
}
