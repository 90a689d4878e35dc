package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/gc"
)

// passReporter shows a pass while it goes on: what it does with each object on standard output, how far it has come on
// standard error; or both as lines of JSON on standard output.
type passReporter struct {
	out, remarks io.Writer
	json, quiet  bool
	dryRun       bool
	every        time.Duration // between two looks at how far it has come
	pass         int64

	mu    sync.Mutex // the pass and the looks come from two goroutines
	bar   *phaseBar  // nil: remarks are no terminal
	wrong error      // of the first line of output that could not be written
}

// Where a person watches, and where a program does, it is looked at more often than a log should grow.
const (
	barEvery  = 200 * time.Millisecond
	jsonEvery = time.Second
)

func newPassReporter(out *console, c *gcRunCmd) *passReporter {
	r := &passReporter{out: out.Out, remarks: out.Err, json: c.JSON, quiet: c.Quiet, every: c.ProgressEvery}
	file, ok := out.Err.(*os.File)
	switch {
	case c.JSON:
		r.every = min(jsonEvery, c.ProgressEvery)
	case ok && term.IsTerminal(int(file.Fd())):
		r.bar, r.every = &phaseBar{to: file}, barEvery
	}
	return r
}

// object shows what was, or would be, done with one object.
func (r *passReporter) object(e gc.Entry) {
	if r.quiet {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.clear() // it may be on the same screen
	if r.json {
		r.note(api.WriteEntryLine(r.out, e))
		return
	}
	r.note(printEntry(r.out, e, r.dryRun))
}

// follow shows from time to time how far the pass has come, until what it returns is called.
func (r *passReporter) follow(ctx context.Context, collector *gc.Collector) (stop func()) {
	if r.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		tick := time.NewTicker(r.every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if p := r.look(ctx, collector); p != nil {
					r.moved(p)
				}
			}
		}
	})
	return func() {
		cancel()
		following.Wait()
		r.bar.clear()
	}
}

// look reads how far the pass has come; nil where that is not to be had, which is no reason to stop it.
func (r *passReporter) look(ctx context.Context, collector *gc.Collector) *gc.Progress {
	p, err := collector.Progress(ctx, r.pass)
	if err != nil {
		return nil
	}
	return p
}

// moved shows how far the phase under way has come.
func (r *passReporter) moved(p *gc.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.json:
		r.note(api.WriteProgressLine(r.out, p))
	case r.bar != nil:
		r.bar.draw(progressOf(p))
	default:
		fmt.Fprintln(r.remarks, progressText(progressOf(p)))
	}
}

// phaseEnded shows that a phase has come to its end.
func (r *passReporter) phaseEnded(ctx context.Context, collector *gc.Collector) {
	if r.quiet {
		return
	}
	p := r.look(ctx, collector)
	if p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.clear()
	if r.json {
		r.note(api.WriteProgressLine(r.out, p))
		return
	}
	fmt.Fprintf(r.remarks, "%s, ended\n", progressText(&client.CollectorProgress{Phase: p.Phase, Done: p.Done, Total: p.Total, PerSecond: p.PerSecond}))
}

// finished shows the record of the pass, and on standard error what needs a look.
func (r *passReporter) finished(run gc.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.json {
		r.note(api.WriteRunLine(r.out, run))
	} else {
		r.note(printSummary(r.out, run))
	}
	for _, line := range loud(run) {
		fmt.Fprintln(r.remarks, line)
	}
	return r.wrong
}

// note keeps the first error of the output.
func (r *passReporter) note(err error) {
	if r.wrong == nil {
		r.wrong = err
	}
}

// printEntry prints what was, or would be, done with one object, and why.
func printEntry(w io.Writer, e gc.Entry, dryRun bool) error {
	done := map[string]string{
		"condemned": "condemned", "put_off": "put off", "braked": "held back by the brake",
		"deleted": "deleted", "delete_failed": "not deleted", "forgotten": "forgot",
		"found": "found", "aborted": "aborted an unfinished upload of",
	}
	would := map[string]string{
		"condemned": "would condemn", "put_off": "would put off", "braked": "would be held back by the brake",
		"deleted": "would delete", "forgotten": "would forget",
		"found": "found", "aborted": "would abort an unfinished upload of",
	}
	verbs := done
	if dryRun {
		verbs = would
	}
	verb, known := verbs[e.Action]
	if !known {
		verb = e.Action
	}
	size := "size unknown"
	if e.Size != nil {
		size = fmt.Sprintf("%d bytes", *e.Size)
	}
	text := fmt.Sprintf("%s %s (%s): %s\n", verb, e.Key, size, e.Reason)
	if e.Detail != "" {
		text += fmt.Sprintf("  the storage said: %s\n", e.Detail)
	}
	_, err := io.WriteString(w, text)
	return err
}

// printSummary prints the pass in one line.
func printSummary(w io.Writer, r gc.Record) error {
	head := fmt.Sprintf("run %d", r.RunID)
	switch {
	case r.ReportOnly:
		head += " (report only: nothing was changed)"
	case r.DryRun:
		head += " (dry run: nothing was changed)"
	}
	_, err := fmt.Fprintf(w, "%s: condemned %d (%d bytes), put off %d, held back %d, deleted %d (%d bytes), failed %d, forgot %d rows\n",
		head, r.Condemned, r.CondemnedBytes, r.PutOff, r.Braked, r.Deleted, r.DeletedBytes, r.DeleteFailed, r.Forgotten)
	if err == nil && r.ScanKeys != nil && (!r.ScanCompleted || r.ScanUnknown+r.ScanReturned+r.ScanForeignObjects > 0) {
		_, err = fmt.Fprintf(w, "scan (complete: %v): %d keys, %d unknown, %d had returned, %d foreign (%d bytes)\n",
			r.ScanCompleted, *r.ScanKeys, r.ScanUnknown, r.ScanReturned, r.ScanForeignObjects, r.ScanForeignBytes)
	}
	return err
}

// needsALook is an error where a pass has left something that does not come right by itself, or found it left by another.
func needsALook(ctx context.Context, collector *gc.Collector, r gc.Record) error {
	standing, err := collector.Standing(ctx)
	if err != nil {
		return err
	}
	held := int64(0)
	for _, h := range standing.HeldBack {
		held += h.Objects
	}
	if r.DryRun {
		held += r.Braked
	}
	if held+r.DeleteFailed+standing.Stuck == 0 {
		return nil
	}
	return fmt.Errorf("run %d %w: %d objects held back, %d not deleted, %d stuck", r.RunID, errNeedsALook, held, r.DeleteFailed, standing.Stuck)
}

// loud says what somebody should look at after a pass.
func loud(r gc.Record) []string {
	var lines []string
	if r.ReportOnly {
		lines = append(lines, fmt.Sprintf("REPORT ONLY: the collector begins once somebody has looked at what it would do, and approved: fenceline gc approve %d", r.RunID))
	}
	if r.Outcome != nil && *r.Outcome == "time_limit" {
		lines = append(lines, "TIME LIMIT: the pass ended by --gc-time-limit; the next one goes on from there.")
	}
	switch {
	case r.Braked > 0 && r.DryRun:
		lines = append(lines, fmt.Sprintf("THE BRAKE: %d objects would be held back that were never published or that nobody knew, more than may be condemned within the window.", r.Braked))
	case r.Braked > 0:
		lines = append(lines, fmt.Sprintf("THE BRAKE: %d objects are held back that were never published or that nobody knew, more than may be condemned within the window. "+
			"Find out why; to release exactly these: fenceline gc approve %d", r.Braked, r.RunID))
	}
	if r.DeleteFailed > 0 {
		lines = append(lines, fmt.Sprintf("NOT DELETED: %d objects. They are tried again; what the storage said: fenceline gc show %d", r.DeleteFailed, r.RunID))
	}
	return lines
}
