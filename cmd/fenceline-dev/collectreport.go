package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fenceline/fenceline/internal/collect"
)

// printCollected prints what came of a collection.
func printCollected(w io.Writer, r collect.Result) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-12s "+format+"\n", append([]any{what}, args...)...)
	}
	line("made", "%d objects that are due, %d that are kept, %d foreign and %d unknown keys, in %v", r.Objects, r.Kept, r.Foreign, r.Unknown, r.Prepared)
	line("collected", "in %v, in %d passes", r.Collected, r.Passes)
	for _, p := range r.Phases {
		line(p.Name, "%.0f a second; each tenth:%s", p.PerSecond, rates(p.Tenths))
		line("", "the first %d at %.0f, the last at %.0f: ratio %.2f", p.Edge, p.First, p.Last, p.Ratio())
	}
	for _, k := range r.Kills {
		line("killed", "when %d were condemned and %d deleted; the next pass began after %v, and did something after %v", k.Condemned, k.Deleted, k.Begun, k.Moved)
	}
	line("memory", "%.1f MiB at the peak of the collector's process, %.1f MiB of it heap", mib(r.PeakRSS), mib(r.PeakHeap))
	for _, l := range []struct {
		what string
		collect.Latencies
	}{{"without", r.Quiet}, {"with", r.During}} {
		line("publish", "%s the collector: median %v, 99 of 100 within %v, at most %v, of %d", l.what, time.Duration(l.P50).Round(time.Millisecond/10),
			time.Duration(l.P99).Round(time.Millisecond/10), time.Duration(l.Max).Round(time.Millisecond/10), l.N)
	}
	line("", "%d failed, %d versions read and found to be what was published", r.Failed, r.Checked)
	line("listing", "%d keys in %v before, %d in %v after", r.ListedBefore.Keys, r.ListedBefore.Took, r.ListedAfter.Keys, r.ListedAfter.Took)
	if r.Recorded > 0 {
		line("", "%d unknown keys were recorded", r.Recorded)
	}
	for _, t := range r.Tables {
		line("table", "%-10s at most %.1f MiB and %d dead rows, vacuumed %d times", t.Name, mib(t.PeakBytes), t.PeakDead, t.Vacuums)
	}
	line("database", "%.1f MiB", mib(r.DiskDatabase))
	for _, what := range r.Broken {
		line("broken", "%s", what)
	}
}

func rates(all []float64) string {
	var text strings.Builder
	for _, rate := range all {
		fmt.Fprintf(&text, " %.0f", rate)
	}
	return text.String()
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
