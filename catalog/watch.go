package catalog

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// ErrTooManyWatching reports that no further request can wait for a change in this process.
var ErrTooManyWatching = errors.New("too many requests wait for reports to change")

// mostWatching is how many requests may wait for changes in one process.
const mostWatching = 2000

// lookEvery is how often the versions of all reports that somebody waits for are looked up, by one statement. It
// varies by half, so that the instances of the service do not ask all at once.
const lookEvery = 250 * time.Millisecond

// watchers are the requests that wait for a report to change.
type watchers struct {
	mu      sync.Mutex
	waiting map[fencing.ReportID]map[*watcher]struct{}
	total   int
}

type watcher struct {
	known   int64
	changed chan struct{} // closed once the version is another
}

// AwaitChange returns nil once the report's version is not the known one (0: nothing was published), or when
// ctx ends its error. What it is then is for the caller to look up. Error: ErrTooManyWatching.
func (c *Catalog) AwaitChange(ctx context.Context, report fencing.ReportID, known int64) error {
	w := &watcher{known: known, changed: make(chan struct{})}
	if !c.watchers.add(report, w) {
		return ErrTooManyWatching
	}
	defer c.watchers.remove(report, w)
	select {
	case <-w.changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watching is how many requests wait for changes in this process.
func (c *Catalog) Watching() int {
	c.watchers.mu.Lock()
	defer c.watchers.mu.Unlock()
	return c.watchers.total
}

// Watch looks for changes of the reports that somebody waits for, until ctx ends. Publishes of this process are
// seen at once.
func (c *Catalog) Watch(ctx context.Context, log *slog.Logger) {
	failing := false // it is said once, and not several times a second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery/2 + rand.N(lookEvery)):
		}
		err := c.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "changes of reports cannot be looked for: who waits is answered late", "error", err)
		}
		failing = err != nil
	}
}

func (c *Catalog) look(ctx context.Context) error {
	const query = `SELECT report_id, version FROM report WHERE report_id = ANY (@reports)`
	type row struct {
		ReportID fencing.ReportID
		Version  int64
	}
	reports := c.watchers.reports()
	if len(reports) == 0 {
		return nil
	}
	rows, err := database.Rows[row](ctx, c.pool, query, pgx.NamedArgs{"reports": reports})
	if err != nil {
		return err
	}
	for _, r := range rows {
		c.watchers.see(r.ReportID, r.Version)
	}
	return nil
}

func (ws *watchers) add(report fencing.ReportID, w *watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.total >= mostWatching {
		return false
	}
	ws.total++
	if ws.waiting == nil {
		ws.waiting = map[fencing.ReportID]map[*watcher]struct{}{}
	}
	if ws.waiting[report] == nil {
		ws.waiting[report] = map[*watcher]struct{}{}
	}
	ws.waiting[report][w] = struct{}{}
	return true
}

func (ws *watchers) remove(report fencing.ReportID, w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.total--
	delete(ws.waiting[report], w)
	if len(ws.waiting[report]) == 0 {
		delete(ws.waiting, report)
	}
}

func (ws *watchers) reports() []fencing.ReportID {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	reports := make([]fencing.ReportID, 0, len(ws.waiting))
	for report := range ws.waiting {
		reports = append(reports, report)
	}
	return reports
}

// see wakes those whose known version is another than the one that was seen.
func (ws *watchers) see(report fencing.ReportID, version int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.waiting[report] {
		if w.known == version {
			continue
		}
		select {
		case <-w.changed:
		default:
			close(w.changed)
		}
	}
}
