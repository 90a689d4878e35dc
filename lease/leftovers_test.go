package lease_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestTenThousandCyclesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	sessions := func() int {
		return testdb.Value[int](t, o.db, `
			SELECT count(*)::int FROM pg_stat_activity
			WHERE datname = current_database() AND usename = 'fenceline_service'`)
	}
	const workers, cycles = 8, 10_000 / 8
	cycle := func(ctx context.Context, report fencing.ReportID, n int) error {
		id := fencing.LeaseID(fmt.Sprintf("l%d", n))
		if _, err := o.Acquire(ctx, asking(report, id)); err != nil {
			return err
		}
		if _, err := o.Renew(ctx, report, id, 0); err != nil {
			return err
		}
		_, err := o.Release(ctx, report, id)
		return err
	}
	// Goroutines inherit the label of the one that starts them: others' tests are not counted.
	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(ctx context.Context) {
		var all errgroup.Group
		for w := range workers {
			all.Go(func() error {
				for n := range cycles {
					if err := cycle(ctx, fencing.ReportID(fmt.Sprintf("r%d", w)), n); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	})

	awaitNoGoroutines(t)
	if n := testdb.Value[int](t, o.db, "SELECT count(*)::int FROM report WHERE lease_id IS NOT NULL"); n != 0 {
		t.Errorf("%d live leases are left", n)
	}
	if n := testdb.Value[int](t, o.db, "SELECT count(*)::int FROM lease WHERE ended_at IS NULL"); n != 0 {
		t.Errorf("%d open records are left", n)
	}
	if n := testdb.Value[int](t, o.db, "SELECT count(*)::int FROM lease"); n != workers*cycles {
		t.Errorf("%d records, want one a grant, %d", n, workers*cycles)
	}
	if n := sessions(); n > 20 {
		t.Errorf("%d sessions are left, more than the pool has", n)
	}
	if n := testdb.Value[int](t, o.db, "SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); n != 0 {
		t.Errorf("%d advisory locks are left", n)
	}
}

// awaitNoGoroutines returns when no goroutine of this test is left but its own: one that has done its work may still be
// on its way out.
func awaitNoGoroutines(t *testing.T) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		left := goroutinesOf(t)
		if left == 0 {
			return
		}
		select {
		case <-deadline:
			t.Errorf("%d goroutines are left", left)
			return
		case <-tick.C:
		}
	}
}

// goroutinesOf counts the goroutines that carry the label of this test.
func goroutinesOf(t *testing.T) int {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	labelled := regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: .*"` + regexp.QuoteMeta(t.Name()) + `"`)
	total := 0
	for _, match := range labelled.FindAllStringSubmatch(profile.String(), -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}
