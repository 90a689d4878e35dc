package catalog_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

// element is one publish of a batch, as the SQL function takes it.
type element map[string]any

func publishOf(report string, f fencing.Fence, key string, more element) element {
	e := element{"report": report, "epoch": f.Epoch, "counter": f.Counter, "idempotency_key": key}
	maps.Copy(e, more)
	return e
}

// batch publishes many at once and returns the answers' statuses, in order.
func (d desk) batch(t *testing.T, elements ...element) ([]string, error) {
	t.Helper()
	requests, err := json.Marshal(elements)
	if err != nil {
		t.Fatal(err)
	}
	var statuses []string
	err = d.db.Pool.QueryRow(t.Context(),
		"SELECT array_agg(status ORDER BY place) FROM publish($1::jsonb)", string(requests)).Scan(&statuses)
	return statuses, err
}

func TestABatchIsAnsweredAsIfItsRequestsCameOneAfterTheOther(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	july, august := d.ready(t, "july", "a7"), d.ready(t, "august", "a7")
	for _, object := range []fencing.ObjectID{"a", "b"} {
		if err := sealIn(d.db.Pool)(t.Context(), fencing.ObjectName{Report: "july", Fence: july, Object: object}); err != nil {
			t.Fatal(err)
		}
	}
	d.stage(t, "august", august, "reserved")
	made := fencing.Fence{Epoch: 1, Counter: 99}
	got, err := d.batch(t,
		publishOf("july", july, "k1", element{"object_id": "a"}),
		publishOf("august", august, "k1", element{"withdraw": true}),
		publishOf("july", july, "k1", element{"object_id": "a"}),
		publishOf("july", july, "k1", element{"object_id": "b"}),
		publishOf("july", july, "k2", element{"object_id": "b"}),
		publishOf("july", july, "k2", element{"object_id": "b", "expected_version": 1}),
		publishOf("nowhere", july, "k1", element{"withdraw": true}),
		publishOf("july", made, "k3", element{"withdraw": true}),
		publishOf("july", july, "k4", element{"from_version": 1, "expected_version": 2}),
		publishOf("august", august, "k2", element{"object_id": "reserved", "expected_version": 1}),
		publishOf("july", july, "k5", element{"object_id": "unknown", "expected_version": 3}),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"applied", "applied", "duplicate", "idempotency_key_reused", "expected_version_required", "applied",
		"report_not_found", "fence_not_granted", "applied", "needs_seal", "object_not_found",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	d.shows(t, "a", july, 3)
	// The collector looks at nothing but this.
	kept := testdb.Value[[]string](t, d.db, "SELECT array_agg(object_id) FROM object WHERE report_id = 'july' AND eligible_at IS NULL")
	if diff := cmp.Diff([]string{"a"}, kept); diff != "" {
		t.Errorf("kept objects (-want +got):\n%s", diff)
	}
}

func TestBatchesOverTheSameReportsInAnyOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const reports, clients, rounds = 20, 16, 12
	fences := map[string]fencing.Fence{}
	for n := range reports {
		report := fmt.Sprintf("r%02d", n)
		fences[report] = d.ready(t, report, "a7")
		name := fencing.ObjectName{Report: fencing.ReportID(report), Fence: fences[report], Object: "a"}
		if err := sealIn(d.db.Pool)(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	var all errgroup.Group
	for client := range clients {
		all.Go(func() error {
			for round := range rounds {
				var elements []element
				for _, n := range rand.Perm(reports)[:8] {
					report := fmt.Sprintf("r%02d", n)
					elements = append(elements, publishOf(report, fences[report],
						fmt.Sprintf("%d-%d", client, round), element{"object_id": "a", "expected_version": rand.IntN(3)}))
				}
				if _, err := d.batch(t, elements...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	gaps := testdb.Value[int](t, d.db, `
		SELECT count(*)::int FROM report r
		WHERE version <> (SELECT count(*) FROM publication p WHERE p.report_id = r.report_id)`)
	if n := testdb.Value[int](t, d.db, "SELECT count(*)::int FROM publication"); n < reports || gaps > 0 {
		t.Errorf("%d versions of %d reports, %d reports with gaps", n, reports, gaps)
	}
}
