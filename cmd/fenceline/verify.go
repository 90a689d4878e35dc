package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/verify"
)

// errFaults reports that something is not in the storage as it was published.
var errFaults = errors.New("not everything is in the storage as it was published")

// verifyCmd looks whether the bytes of what is shown are there.
type verifyCmd struct {
	databaseSettings
	storageSettings
	verifySettings
	logSettings
	Deep    bool   `help:"Read all the bytes and compare their digests. Without it the storage is asked for size and ETag, and for the digest where it vouches for one."`
	Report  string `default:"*" placeholder:"PATTERN" help:"Only these reports: an id, or the beginning of ids followed by * (default: ${default})."`
	Restart bool   `help:"Begin anew, although the last verification with the same options did not come to its end."`
	JSON    bool   `name:"json" help:"Print a line of JSON for each fault, and at the end for the verification as GET /v1/verifications/ID shows it."`
}

// Run verifies, and fails where something is not as it was published.
func (c *verifyCmd) Run(ctx context.Context, out *console) error {
	if err := c.verifySettings.check(); err != nil {
		return err
	}
	pattern, err := api.ParsePattern(c.Report)
	if err != nil {
		return usageError{fmt.Errorf("--report: %w", err)}
	}
	stores, err := openStores(ctx, c.databaseSettings, c.storageSettings, int32(min(c.VerifyConcurrency+2, 10)), c.logger())
	if err != nil {
		return err
	}
	defer stores.close()
	if err := stores.ready(ctx); err != nil {
		return err
	}
	cfg := c.verifySettings.config()
	cfg.Log = c.logger()
	verifier := verify.New(stores.pool, stores.bucket, cfg)

	printer := verifyPrinter{to: out.Out, json: c.JSON}
	bar := newTally(out.Err)
	options := verify.Options{
		Deep: c.Deep, Restart: c.Restart, By: "command line: " + userName(),
		Each:     func(f verify.Finding) { bar.aside(func() { printer.finding(f) }) },
		Progress: bar.moved,
	}
	if pattern != "*" {
		r := pattern.Range()
		options.Pattern, options.Names = string(pattern), catalog.Names{From: r.From, Below: r.To}
	}
	run, err := beginVerify(ctx, verifier, options, out.Err)
	if err != nil {
		return err
	}
	return c.finish(ctx, verifier, run, printer, bar)
}

// beginVerify begins a verification. Where one is under way it waits as long as it takes to see whether that lives: of one that
// was killed the record stops moving, and is gone on with.
func beginVerify(ctx context.Context, v *verify.Verifier, o verify.Options, remarks io.Writer) (*verify.Run, error) {
	var first time.Time
	for {
		run, err := v.Begin(ctx, o)
		running, ok := errors.AsType[*verify.AlreadyRunningError](err)
		if !ok {
			return run, err
		}
		record, failure := v.Record(ctx, running.VerificationID)
		switch {
		case failure != nil:
			return nil, failure
		case first.IsZero():
			first = record.BeatAt
			fmt.Fprintf(remarks, "verification %d counts as under way: waiting to see whether it still moves\n", record.VerificationID)
		case record.FinishedAt == nil && !record.BeatAt.Equal(first):
			return nil, err
		}
		timer := time.NewTimer(500 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// finish runs what was begun, and prints how it ended.
func (c *verifyCmd) finish(ctx context.Context, v *verify.Verifier, run *verify.Run, printer verifyPrinter, bar *tally) error {
	record := run.Record()
	if run.Resumed && record.AtObjectID != "" {
		bar.say(fmt.Sprintf("verification %d goes on where it stopped, after %s/%d.%d/%s: %d objects have been looked at (--restart begins anew)",
			run.ID, record.AtReportID, record.AtEpoch, record.AtCounter, record.AtObjectID, record.Objects))
		if err := printer.earlier(ctx, v, run.ID); err != nil {
			bar.end()
			return errors.Join(err, run.Run(canceled(ctx)))
		}
	}
	err := run.Run(ctx)
	bar.end()
	record, failure := v.Record(context.WithoutCancel(ctx), run.ID)
	if failure != nil {
		return errors.Join(err, failure)
	}
	if failure := printer.summary(record); failure != nil {
		return errors.Join(err, failure)
	}
	if err != nil {
		return fmt.Errorf("%w (the next one with the same options goes on from there)", err)
	}
	if record.Faults > 0 {
		return fmt.Errorf("%w: %d of %d objects", errFaults, record.Faults, record.Objects)
	}
	return nil
}

// canceled is ctx after its end: what is run under it stops at once, and says so in its record.
func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// verifyPrinter prints what a verification finds.
type verifyPrinter struct {
	to   io.Writer
	json bool
}

// earlier prints what was found before the verification was interrupted.
func (p verifyPrinter) earlier(ctx context.Context, v *verify.Verifier, id int64) error {
	const page = 1000
	for after := (verify.After{}); ; {
		found, err := v.Findings(ctx, id, catalog.Names{}, after, page)
		if err != nil {
			return err
		}
		for _, f := range found {
			p.finding(f)
			after = f.Place()
		}
		if len(found) < page {
			return nil
		}
	}
}

// finding prints a fault: what is wrong with which versions, where, what was published and what was found.
func (p verifyPrinter) finding(f verify.Finding) {
	if p.json {
		_ = api.WriteFindingLine(p.to, f) // whoever closes the output early learns it with the summary
		return
	}
	versions := strings.Trim(strings.ReplaceAll(fmt.Sprint(f.Versions), " ", ", "), "[]")
	word := "version"
	if len(f.Versions) > 1 {
		word = "versions"
	}
	shown := ""
	if f.Visible {
		shown = ", visible"
	}
	fmt.Fprintf(p.to, "%s: %s, %s %s%s: %s\n  published: %s\n  found:     %s\n",
		strings.ToUpper(string(f.Fault)), f.Object.Report, word, versions, shown, f.Key, described(f.Published), described(f.Found))
	if f.Detail != "" {
		fmt.Fprintf(p.to, "  the storage said: %s\n", strings.Join(strings.Fields(f.Detail), " "))
	}
}

// described tells what bytes are known by.
func described(s verify.Stat) string {
	if s.Size == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%d bytes", *s.Size)
	for _, known := range []struct{ name, value string }{{"sha256", s.SHA256}, {"ETag", s.ETag}, {"version id", s.VersionID}} {
		if known.value != "" {
			text += ", " + known.name + " " + known.value
		}
	}
	return text
}

// summary prints the verification in one line.
func (p verifyPrinter) summary(r verify.Record) error {
	if p.json {
		return api.WriteVerificationLine(p.to, r)
	}
	how, of := "", ""
	if r.Deep {
		how = ", all bytes read"
	}
	if r.Outcome != nil && *r.Outcome != "completed" && r.TotalObjects != nil {
		of = fmt.Sprintf(" of %d", *r.TotalObjects)
	}
	outcome := "under way"
	if r.Outcome != nil {
		outcome = *r.Outcome
	}
	_, err := fmt.Fprintf(p.to, "verification %d %s: %d%s objects (%d bytes%s), %d faults\n", r.VerificationID, outcome, r.Objects, of, r.Bytes, how, r.Faults)
	return err
}
