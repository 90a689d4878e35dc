package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/staging"
)

// errNeedsALook reports that a pass has left something that does not come right by itself.
var errNeedsALook = errors.New("needs a look")

// gcRunCmd runs one pass of the collector in this process.
type gcRunCmd struct {
	databaseSettings
	storageSettings
	retentionSettings
	collectorSettings
	logSettings
	DryRun        bool          `help:"Print what would be done, and do nothing."`
	NoScan        bool          `help:"Do not compare the bucket with the catalog."`
	JSON          bool          `name:"json" help:"Print a line of JSON for each object, for progress, and at the end for the run as GET /v1/gc/runs/RUN shows it."`
	Quiet         bool          `short:"q" help:"Print neither objects nor progress."`
	ProgressEvery time.Duration `default:"10s" help:"Where standard error is no terminal, tell how far it is at most so often."`
	Strict        bool          `help:"End with 9 where something needs a look: objects are held back, by this pass or since an earlier one, or could not be deleted."`
}

// Validate refuses a pause between two lines in which nobody would wait for the second. Kong calls it.
func (c *gcRunCmd) Validate() error {
	return inBounds(period{"--progress-every", c.ProgressEvery})
}

// Run does one pass.
func (c *gcRunCmd) Run(ctx context.Context, out *console) error {
	if err := c.retentionSettings.check(nil); err != nil {
		return err
	}
	if err := c.collectorSettings.check(c.retentionSettings); err != nil {
		return err
	}
	stores, err := openStores(ctx, c.databaseSettings, c.storageSettings, 3, c.logger()) // the pass, its sign of life, its progress
	if err != nil {
		return err
	}
	defer stores.close()
	collector, err := c.collector(ctx, stores)
	if err != nil {
		return err
	}
	show := newPassReporter(out, c)
	pass, err := collector.Begin(ctx, gc.Options{
		DryRun: c.DryRun, Scan: !c.NoScan, By: "command line: " + userName(), Each: show.object,
		PhaseEnded: func(ctx context.Context, _ string) { show.phaseEnded(ctx, collector) },
	})
	if err != nil {
		return err
	}
	show.pass, show.dryRun = pass.ID, c.DryRun || pass.ReportOnly
	stopped := show.follow(ctx, collector)
	failure := pass.Run(ctx)
	stopped()
	if errors.Is(failure, gc.ErrTimeLimit) {
		failure = nil // it has ended as it was told to
	}

	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	run, err := collector.Record(ended, pass.ID)
	if err == nil {
		err = show.finished(run)
	}
	switch {
	case failure != nil && ctx.Err() != nil:
		return fmt.Errorf("%w; the next pass goes on from there", errors.Join(context.Canceled, failure))
	case failure != nil:
		return failure
	case err == nil && c.Strict:
		return needsALook(ended, collector, run)
	}
	return err
}

// collector makes the collector of a database and a bucket that belong together.
func (c *gcRunCmd) collector(ctx context.Context, s stores) (*gc.Collector, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if err := staging.Claim(ctx, s.pool, s.bucket); err != nil {
		return nil, err
	}
	cfg := c.collectorSettings.config(c.retentionSettings)
	cfg.Log = c.logger()
	return gc.New(s.pool, s.bucket, cfg), nil
}

// userName is who runs the command, as far as the system knows.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown user"
	}
	return u.Username
}
