package collect

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// memory is the most that a process had in use, and what one had when it was last looked at.
type memory struct{ rss, heap, rssNow, heapNow int64 }

// sample looks at a process. One that has just ended has nothing in use.
func (m *memory) sample(pid int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return
	}
	for line := range bytes.Lines(status) {
		for _, m := range []struct {
			name      string
			now, most *int64
		}{{"VmHWM", new(int64), &m.rss}, {"VmRSS", &m.rssNow, &m.rss}, {"RssAnon", &m.heapNow, &m.heap}} {
			var kib int64
			if _, err := fmt.Sscanf(string(line), m.name+": %d kB", &kib); err == nil {
				*m.now = kib << 10
				*m.most = max(*m.most, *m.now)
			}
		}
	}
}

// sample writes down how it is, once a second.
func (c *collecting) sample() {
	at := since(c.started)
	if n := len(c.result.Samples); n > 0 && at-c.result.Samples[n-1].At < Took(time.Second) {
		return
	}
	lately := c.publishers.lately()
	c.result.Samples = append(c.result.Samples, Sample{
		At: at, Condemned: c.last.Condemned, Deleted: c.last.Deleted, RSS: c.peak.rssNow, Heap: c.peak.heapNow,
		Published: lately.N, Slowest: lately.Max,
	})
}

// lookAtTables notes how large those tables are that a pass writes to, and what it leaves in them for vacuum.
func (c *collecting) lookAtTables(ctx context.Context) error {
	const query = `
		SELECT relname::text AS name, pg_total_relation_size(relid) AS peak_bytes, n_dead_tup AS peak_dead, autovacuum_count AS vacuums
		FROM pg_stat_user_tables
		WHERE schemaname = 'public' AND relname IN ('object', 'report', 'gc_ledger', 'gc_run')
		ORDER BY name`
	now, err := database.Rows[Table](ctx, c.pool, query, pgx.NamedArgs{})
	if err != nil {
		return fmt.Errorf("look at the tables: %w", err)
	}
	for i, t := range now {
		if i < len(c.tables) {
			now[i].PeakBytes, now[i].PeakDead = max(t.PeakBytes, c.tables[i].PeakBytes), max(t.PeakDead, c.tables[i].PeakDead)
		}
	}
	c.tables = now
	return nil
}

// batch is what one transaction of a pass has written down.
type batch struct {
	RunID   int64
	Action  string
	N       int
	Seconds *float64 // since the one before in the same pass; nil for its first
}

// rates tells from the ledger how fast each phase went: from one transaction of a pass to its next. The first of each
// pass counts for nothing, since how long it took is not written down; so no time counts in which no collector ran.
func (f *Field) rates(ctx context.Context) error {
	const query = `
		SELECT run_id, action, n, extract(epoch FROM at - lag(at) OVER (PARTITION BY run_id, action ORDER BY at))::float8 AS seconds
		FROM (SELECT run_id, action, at, count(*)::int AS n FROM gc_ledger
		      WHERE action IN ('condemned', 'deleted') GROUP BY run_id, action, at) b
		ORDER BY action, at`
	batches, err := database.Rows[batch](ctx, f.pool, query, pgx.NamedArgs{})
	if err != nil {
		return fmt.Errorf("read the ledger's times: %w", err)
	}
	phases := map[string][]batch{}
	for _, b := range batches {
		if b.Seconds != nil {
			phases[b.Action] = append(phases[b.Action], b)
		}
	}
	f.result.Phases = nil
	for _, p := range []struct{ name, action string }{{"condemn", "condemned"}, {"purge", "deleted"}} {
		f.result.Phases = append(f.result.Phases, phaseOf(p.name, phases[p.action], f.Objects))
	}
	return nil
}

// phaseOf sums up the batches of a phase, of a field of so many objects.
func phaseOf(name string, batches []batch, objects int) Phase {
	p := Phase{Name: name, Edge: max(1, min(10_000, objects/10))}
	total := 0
	for _, b := range batches {
		total += b.N
	}
	p.PerSecond = rateBetween(batches, 0, total)
	for n := range 10 {
		p.Tenths = append(p.Tenths, rateBetween(batches, n*total/10, (n+1)*total/10))
	}
	p.First, p.Last = rateBetween(batches, 0, p.Edge), rateBetween(batches, total-p.Edge, total)
	return p
}

// rateBetween is how many a second the objects from one place on to another went, a batch that is in only in part
// counting with that part of its time.
func rateBetween(batches []batch, from, to int) float64 {
	at, seconds, n := 0, 0.0, 0
	for _, b := range batches {
		in := min(to, at+b.N) - max(from, at)
		at += b.N
		if in > 0 {
			n += in
			seconds += *b.Seconds * float64(in) / float64(b.N)
		}
	}
	if seconds == 0 {
		return 0
	}
	return float64(n) / seconds
}
