package catalog_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

// throng is fifty clients, each with a connection of its own, over the same twenty reports.
type throng struct {
	keeper
	fences map[string]fencing.Fence
}

const (
	throngClients = 50
	throngReports = 20
	throngRounds  = 8
)

func TestFiftyWhoDoEverythingWithTheSameReportsInAnyOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	wide := *k.db // whose connections are counted once they are closed
	pool, err := database.Open(t.Context(), database.Config{URL: k.db.URL, Pool: throngClients, Name: "throng"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	wide.Pool = pool
	th := throng{keeper: k, fences: map[string]fencing.Fence{}}
	th.db = &wide
	th.Catalog = k.under(t, &wide, catalog.Config{Retention: short})
	th.collector = gc.New(pool, k.storage.Open(t), gc.Config{PurgeGrace: grace, Tombstones: forever})
	th.prepare(t)

	var all errgroup.Group
	for n := range throngClients {
		all.Go(func() error { return th.live(t, n) })
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	pool.Close()
	th.db = k.db
	k.db.AwaitGone(t, "throng") // what a session knows of a deadlock is counted when it ends, at the latest
	if n := testdb.Value[int](t, k.db, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	broken := testdb.Value[int](t, k.db, `
		SELECT count(*)::int FROM report r
		LEFT JOIN object o ON (o.report_id, o.fence_epoch, o.fence_counter, o.object_id)
		    = (r.report_id, r.visible_epoch, r.visible_counter, r.visible_object_id)
		WHERE r.version <> (SELECT count(*) FROM publication p WHERE p.report_id = r.report_id)
		   OR r.visible_object_id IS NOT NULL AND (o.state <> 'sealed' OR o.eligible_at IS NOT NULL)`)
	versions := testdb.Value[int](t, k.db, "SELECT count(*)::int FROM publication")
	if broken > 0 || versions < 3*throngReports {
		t.Errorf("%d versions, and %d reports have gaps or do not keep what is visible", versions, broken)
	}
}

// prepare makes the reports, each with two versions.
func (th throng) prepare(t *testing.T) {
	t.Helper()
	for n := range throngReports {
		report := fmt.Sprintf("r%02d", n)
		f := th.grant(t, report, "a7")
		th.fences[report] = f
		for n, id := range []fencing.ObjectID{"a", "b", "c"} {
			name := fencing.ObjectName{Report: fencing.ReportID(report), Fence: f, Object: id}
			th.stage(t, report, f, string(id))
			th.upload(t, name)
			if id == "c" {
				continue
			}
			r := object(f, id, string(id), expecting(int64(n)))
			r.Report = name.Report
			if _, err := th.Publish(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// live does one thing after the other with reports in an order of its own. A refusal is an answer; a deadlock, or
// anything else that the database could not decide, is an error.
func (th throng) live(t *testing.T, n int) error {
	for round := range throngRounds {
		order := rand.Perm(throngReports)[:6]
		var err error
		switch n % 5 {
		case 0, 1:
			err = th.publishBatch(t, order, fmt.Sprintf("%d-%d", n, round))
		case 2:
			err = th.each(order, func(report fencing.ReportID) error {
				version := rand.Int64N(3) + 1
				return errors.Join(th.Hold(t.Context(), report, version, "test"), th.Unhold(t.Context(), report, version, "test"))
			})
		case 3:
			err = th.each(order, func(report fencing.ReportID) error {
				changes := catalog.Changes{}
				keeping(rand.IntN(3))(changes)
				_, err := th.ChangeSettings(t.Context(), report, changes)
				if rand.IntN(4) == 0 {
					err = errors.Join(err, th.Erase(t.Context(), report, rand.Int64N(3)+1, "asked to", "test"))
				}
				return err
			})
		case 4:
			if n == 4 {
				th.db.Advance(t, step)
			}
			err = th.decided(th.pass(t.Context()))
		}
		if err != nil {
			return fmt.Errorf("client %d in round %d: %w", n, round, err)
		}
	}
	return nil
}

// publishBatch publishes, rolls back and withdraws several reports in one transaction.
func (th throng) publishBatch(t *testing.T, order []int, key string) error {
	var elements []element
	for _, n := range order {
		report := fmt.Sprintf("r%02d", n)
		version := testdb.Value[int64](t, th.db, "SELECT version FROM report WHERE report_id = $1", report)
		what := []element{{"object_id": "c"}, {"from_version": 1}, {"from_version": version}, {"withdraw": true}}[rand.IntN(4)]
		what["expected_version"] = version
		elements = append(elements, publishOf(report, th.fences[report], key, what))
	}
	_, err := th.batch(t, elements...)
	return err
}

func (th throng) each(order []int, do func(fencing.ReportID) error) error {
	for _, n := range order {
		if err := th.decided(do(fencing.ReportID(fmt.Sprintf("r%02d", n)))); err != nil {
			return err
		}
	}
	return nil
}

// decided is nil unless something went wrong that is no refusal.
func (th throng) decided(err error) error {
	refusals := []error{
		fencing.ErrObjectGone, fencing.ErrObjectNotFound, catalog.ErrVersionInUse, catalog.ErrVersionNotFound, gc.ErrAlreadyRunning,
		gc.ErrRunEnded, // by the clock that goes on
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) && !errors.Is(err, database.ErrUnavailable) {
			return nil
		}
	}
	return err
}
