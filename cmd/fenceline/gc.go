package main

import (
	"context"
	"fmt"
	"io"
	"os/user"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/migrations"
	"github.com/fenceline/fenceline/staging"
)

// gcCmd collects what nothing refers to any more.
type gcCmd struct {
	Run gcRunCmd `cmd:"" help:"Run one pass of the collector, and print what it did with each object and why."`
}

type gcRunCmd struct {
	databaseSettings
	storageSettings
	retentionSettings
	collectorSettings
	logSettings
	DryRun bool `help:"Print what would be done, and do nothing."`
}

// Run does one pass.
func (c *gcRunCmd) Run(ctx context.Context, out *console) error {
	if err := c.retentionSettings.check(nil); err != nil {
		return err
	}
	if err := c.collectorSettings.check(); err != nil {
		return err
	}
	pool, err := database.Open(ctx, c.databaseSettings.config(poolSettings{DatabasePool: 2}))
	if err != nil {
		return usageError{err}
	}
	defer pool.Close()
	storage := c.storageSettings.config()
	storage.Log = c.logger()
	bucket, err := staging.OpenBucket(ctx, storage)
	if err != nil {
		return usageError{err}
	}
	if err := migrations.Fits(ctx, pool); err != nil {
		return err
	}
	if _, _, err := lease.New(pool).VerifyEpoch(ctx); err != nil {
		return err
	}
	if err := staging.Claim(ctx, pool, bucket); err != nil {
		return err
	}
	cfg := c.collectorSettings.config(c.retentionSettings)
	cfg.Log = c.logger()
	collector := gc.New(pool, bucket, cfg)

	pass, err := collector.Begin(ctx, gc.Options{
		DryRun: c.DryRun, By: "command line: " + userName(),
		Each: func(e gc.Entry) { printEntry(out.Out, e, c.DryRun) },
	})
	if err != nil {
		return err
	}
	if err := pass.Run(ctx); err != nil {
		return err
	}
	run, err := collector.Record(ctx, pass.ID)
	if err != nil {
		return err
	}
	return printSummary(out.Out, run)
}

// printEntry prints what was, or would be, done with one object, and why.
func printEntry(w io.Writer, e gc.Entry, dryRun bool) {
	done := map[string]string{
		"condemned": "condemned", "put_off": "put off", "braked": "held back by the brake",
		"deleted": "deleted", "delete_failed": "not deleted", "forgotten": "forgot",
	}
	would := map[string]string{
		"condemned": "would condemn", "put_off": "would put off", "braked": "would be held back by the brake",
		"deleted": "would delete", "forgotten": "would forget",
	}
	verb := done[e.Action]
	if dryRun {
		verb = would[e.Action]
	}
	size := "size unknown"
	if e.Size != nil {
		size = fmt.Sprintf("%d bytes", *e.Size)
	}
	fmt.Fprintf(w, "%s %s (%s): %s\n", verb, e.Key, size, e.Reason)
	if e.Detail != "" {
		fmt.Fprintf(w, "  the storage said: %s\n", e.Detail)
	}
}

// printSummary prints the pass in one line, and what needs a look.
func printSummary(w io.Writer, r gc.Record) error {
	head := fmt.Sprintf("run %d", r.RunID)
	if r.DryRun {
		head += " (dry run: nothing was changed)"
	}
	_, err := fmt.Fprintf(w, "%s: condemned %d (%d bytes), put off %d, held back %d, deleted %d (%d bytes), failed %d, forgot %d rows\n",
		head, r.Condemned, r.CondemnedBytes, r.PutOff, r.Braked, r.Deleted, r.DeletedBytes, r.DeleteFailed, r.Forgotten)
	if err == nil && r.Braked > 0 {
		_, err = fmt.Fprintf(w, "THE BRAKE: %d objects that were never published are due, more than may be condemned within the window. "+
			"Find out why before you raise --gc-brake-share.\n", r.Braked)
	}
	return err
}

// userName is who runs the command, as far as the system knows.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown user"
	}
	return u.Username
}
