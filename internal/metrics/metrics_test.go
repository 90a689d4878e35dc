package metrics_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/metrics"
	"github.com/fenceline/fenceline/internal/testdb"
)

// declare makes metrics whose database answers what the test says.
func declare(t testing.TB, state func(context.Context) (metrics.State, error)) *metrics.Metrics {
	t.Helper()
	pool := testdb.Open(t, database.Config{URL: "postgres://127.0.0.1:1/nowhere"})
	none := func() int { return 0 }
	return metrics.New(metrics.Sources{
		Version: "v1.2.3", Pool: pool.Stat, WaitingForLeases: none, WaitingForChanges: none, State: state,
		Backlog: func(context.Context) (metrics.Backlog, error) {
			return metrics.Backlog{Overdue: map[time.Duration]int64{0: 0}}, nil
		},
	})
}

func whole(context.Context) (metrics.State, error) {
	now := time.Now()
	return metrics.State{EpochVerified: true, LastSuccess: &now}, nil
}

// use makes a series of every kind.
func use(m *metrics.Metrics) {
	m.Request(metrics.Request{Route: "/v1/reports", Method: "GET", Status: 200, Took: time.Second})
	m.Request(metrics.Request{Route: "/v1/x", Method: "POST", Status: 409, Operation: metrics.Publish, Code: "stale_fence"})
	m.FenceRefused("stale_fence", "superseded")
	m.FenceRefused("fence_not_granted", "")
	m.Renewed(time.Second)
	m.StorageCall("GetObject", metrics.StorageOK, time.Second)
	m.Collected("deleted", 5)
	m.PassEnded("completed")
}

func TestTheSeriesAreAsPrometheusWantsThem(t *testing.T) {
	t.Parallel()
	m := declare(t, whole)
	use(m)
	problems, err := testutil.GatherAndLint(m.Registry())
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %+v, %v", problems, err)
	}
}

func TestEverySeriesThatIsDeclaredIsShownWithItsHelp(t *testing.T) {
	t.Parallel()
	m := declare(t, whole)
	use(m)
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "fenceline_") {
			shown = append(shown, f.GetName())
		}
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
	}
	declared := names(t)
	if len(declared) < 25 {
		t.Fatalf("only %d names were found", len(declared))
	}
	if diff := cmp.Diff(declared, shown); diff != "" {
		t.Errorf("series (-declared +shown):\n%s", diff)
	}
}

// names lists the names of series that stand in the source, as those do who check the alerts.
func names(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				if name, err := strconv.Unquote(text.Value); err == nil && strings.HasPrefix(name, "fenceline_") {
					found = append(found, name)
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestNobodyHasToAskWhetherSomethingIsCounted(t *testing.T) {
	t.Parallel()
	use(nil)
}

func TestWhatTheDatabaseWouldTellIsAbsentWhileItDoesNotAnswer(t *testing.T) {
	t.Parallel()
	m := declare(t, func(context.Context) (metrics.State, error) { return metrics.State{}, errors.New("away") })
	for name, want := range map[string]int{
		"fenceline_database_up": 1, "fenceline_epoch_verified": 0, "fenceline_collector_last_success_timestamp_seconds": 0,
		"fenceline_collector_running": 0, "fenceline_collector_paused": 0, "fenceline_freezes": 0, "fenceline_build_info": 1,
	} {
		if got, err := testutil.GatherAndCount(m.Registry(), name); got != want || err != nil {
			t.Errorf("%s: %d series, %v, want %d", name, got, err, want)
		}
	}
}

func TestWhatIsLeftToDoIsToldApartFromWhetherTheDatabaseIsUp(t *testing.T) {
	t.Parallel()
	pool := testdb.Open(t, database.Config{URL: "postgres://127.0.0.1:1/nowhere"})
	none := func() int { return 0 }
	sources := metrics.Sources{Pool: pool.Stat, WaitingForLeases: none, WaitingForChanges: none, State: whole}
	sources.Backlog = func(context.Context) (metrics.Backlog, error) {
		return metrics.Backlog{}, errors.New("it takes too long")
	}
	for name, want := range map[string]int{"fenceline_database_up": 1, "fenceline_collector_stuck_objects": 0, "fenceline_collector_overdue_objects": 0} {
		if got, err := testutil.GatherAndCount(metrics.New(sources).Registry(), name); got != want || err != nil {
			t.Errorf("%s: %d series, %v, want %d", name, got, err, want)
		}
	}
	sources.Backlog = func(context.Context) (metrics.Backlog, error) {
		return metrics.Backlog{
			ReportOnly: true, HeldBack: 7, Stuck: 3, Oldest: 90 * time.Minute,
			Overdue: map[time.Duration]int64{0: 9, time.Hour: 4, 7 * 24 * time.Hour: 0},
		}, nil
	}
	const want = `
		# HELP fenceline_collector_overdue_objects Objects that should have gone longer ago than that, and are still there.
		# TYPE fenceline_collector_overdue_objects gauge
		fenceline_collector_overdue_objects{older_than="0h"} 9
		fenceline_collector_overdue_objects{older_than="168h"} 0
		fenceline_collector_overdue_objects{older_than="1h"} 4
		# HELP fenceline_collector_oldest_overdue_seconds How long ago the first of the objects that are still there should have gone; 0 if there is none.
		# TYPE fenceline_collector_oldest_overdue_seconds gauge
		fenceline_collector_oldest_overdue_seconds 5400
		# HELP fenceline_collector_held_back_objects Objects that the collector's brake holds back until an operator approves.
		# TYPE fenceline_collector_held_back_objects gauge
		fenceline_collector_held_back_objects 7
		# HELP fenceline_collector_report_only 1 while the collector of a new installation only reports what it would do, until an operator approves.
		# TYPE fenceline_collector_report_only gauge
		fenceline_collector_report_only 1
		# HELP fenceline_collector_stuck_objects Condemned objects that could not be deleted in ten attempts and more.
		# TYPE fenceline_collector_stuck_objects gauge
		fenceline_collector_stuck_objects 3
	`
	if err := testutil.GatherAndCompare(metrics.New(sources).Registry(), strings.NewReader(want), "fenceline_collector_overdue_objects",
		"fenceline_collector_oldest_overdue_seconds", "fenceline_collector_held_back_objects", "fenceline_collector_report_only",
		"fenceline_collector_stuck_objects"); err != nil {
		t.Error(err)
	}
}

func TestScrapesAtTheSameTimeAskTheDatabaseOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.Open(t, database.Config{URL: "postgres://127.0.0.1:1/nowhere"})
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		answer := make(chan struct{})
		none := func() int { return 0 }
		m := metrics.New(metrics.Sources{
			Pool: pool.Stat, WaitingForLeases: none, WaitingForChanges: none,
			State: func(ctx context.Context) (metrics.State, error) {
				asked.Add(1)
				<-answer
				return whole(ctx)
			},
			Backlog: func(context.Context) (metrics.Backlog, error) {
				asked.Add(1)
				<-answer
				return metrics.Backlog{}, nil
			},
		})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := m.Registry().Gather(); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // all of them wait for the database
		close(answer)
		all.Wait()
		if asked := asked.Load(); asked != 2 {
			t.Errorf("8 scrapes asked the database %d times, want once for how it stands and once for what is left to do", asked)
		}
	})
}
