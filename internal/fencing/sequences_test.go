package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// Two reports, three workers, and whatever they may do: each answer must be the model's, and after each step
// the database must say the same as the model.
func TestEverySequenceOfRequestsIsAnsweredAsTheModelSays(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	real := product{
		db: db, leases: lease.New(db.Pool),
		catalog: catalog.New(db.Pool, func(context.Context, fencing.ObjectName) error { return errors.New("all is sealed") }, catalog.Config{}),
	}
	var round atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		n := round.Add(1)
		s := &sequence{t: t, product: real, now: 0, models: map[fencing.ReportID]*model{}}
		for _, name := range []string{"july", "august"} {
			report := fencing.ReportID(fmt.Sprintf("%s.%d", name, n))
			s.reports = append(s.reports, report)
			s.models[report] = newModel()
		}
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": s.acquire, "keep": s.keep, "operate": s.operate, "advance": s.advance,
			"publish": s.publish, "publish next": s.publish, "publish more": s.publish,
			"": s.check,
		})
	})
}

// sequence is one run of requests against the product and the model at once.
type sequence struct {
	product
	t       *testing.T
	now     int
	reports []fencing.ReportID
	models  map[fencing.ReportID]*model
}

func (s *sequence) draw(rt *rapid.T) (fencing.ReportID, *model) {
	report := rapid.SampledFrom(s.reports).Draw(rt, "report")
	return report, s.models[report]
}

// drawLease takes a worker's first, second … lease: few, so that ids are met again after they have ended.
func drawLease(rt *rapid.T) (worker, id string) {
	worker = rapid.SampledFrom([]string{"A", "B", "C"}).Draw(rt, "worker")
	return worker, worker + strconv.Itoa(rapid.IntRange(1, 4).Draw(rt, "lease"))
}

func agree(rt *rapid.T, want, got string) {
	if got != want {
		rt.Fatalf("the answer is %q, want %q", got, want)
	}
}

func (s *sequence) acquire(rt *rapid.T) {
	report, m := s.draw(rt)
	worker, id := drawLease(rt)
	worker = rapid.SampledFrom([]string{worker, worker, worker, "somebody else"}).Draw(rt, "holder")
	want := m.acquire(id, worker, s.now)
	agree(rt, want, s.product.acquire(s.t, report, id, worker))
	if strings.HasPrefix(want, "acquired") {
		s.stage(s.t, report, m.granted)
	}
}

// keep renews or releases, mostly the lease that stands.
func (s *sequence) keep(rt *rapid.T) {
	report, m := s.draw(rt)
	_, id := drawLease(rt)
	if m.holding != "" && rapid.IntRange(0, 3).Draw(rt, "whose") > 0 {
		id = m.holding
	}
	if rapid.IntRange(0, 2).Draw(rt, "how") > 0 {
		agree(rt, m.renew(id, s.now), s.product.renew(s.t, report, id))
	} else {
		agree(rt, m.release(id, s.now), s.product.release(s.t, report, id))
	}
}

// operate does what the operator and the database's owner may do.
func (s *sequence) operate(rt *rapid.T) {
	report, m := s.draw(rt)
	if rapid.IntRange(0, 2).Draw(rt, "what") == 0 {
		fence := rapid.Int64Range(0, m.granted+1).Draw(rt, "fence")
		agree(rt, m.revoke(fence, s.now), s.product.revoke(s.t, report, fence))
		return
	}
	m.mode = rapid.SampledFrom([]string{"granted", "granted", "accepted", "live"}).Draw(rt, "mode")
	m.once = rapid.IntRange(0, 3).Draw(rt, "once") == 3
	if !m.exists {
		m.exists = true
		s.db.Exec(s.t, "INSERT INTO report (report_id, created_at) VALUES ($1, fenceline_now())", report)
	}
	s.db.Exec(s.t, "UPDATE report SET fencing = $2, publishes_per_grant = CASE WHEN $3 THEN 'one' END WHERE report_id = $1",
		report, m.mode, m.once)
}

func (s *sequence) publish(rt *rapid.T) {
	report, m := s.draw(rt)
	q := ask{
		key:      "k" + strconv.Itoa(rapid.IntRange(1, 12).Draw(rt, "key")),
		fence:    max(1, m.granted-rapid.SampledFrom([]int64{0, 0, 0, 0, 1, 2, -1}).Draw(rt, "behind")),
		expected: rapid.SampledFrom([]int64{-1, 0, int64(len(m.versions)), int64(len(m.versions))}).Draw(rt, "expected"),
	}
	switch rapid.SampledFrom([]string{"object", "object", "roll back", "withdraw", "again"}).Draw(rt, "kind") {
	case "object":
		q.object = rapid.SampledFrom([]string{"a", "b", "a", "b", "missing"}).Draw(rt, "object")
	case "roll back":
		q.from = rapid.Int64Range(1, int64(len(m.versions))+1).Draw(rt, "from")
	case "again":
		if len(m.versions) > 0 {
			q = rapid.SampledFrom(m.versions).Draw(rt, "earlier")
			q.shows = ""
		}
	}
	agree(rt, m.publish(q, s.now), s.product.publish(s.t, report, q))
}

// advance moves both clocks: by steps between which the real one's own seconds do not matter.
func (s *sequence) advance(rt *rapid.T) {
	step := rapid.SampledFrom([]int{25, 100}).Draw(rt, "seconds")
	s.now += step
	s.db.Advance(s.t, time.Duration(step)*time.Second)
}

// state is what the database says of a report.
type state struct {
	Version, Granted, Accepted, Barred int64
	Holding                            string
	Shows                              string
	Fences                             []int64  // of the versions
	Keys                               []string // of the versions
	Grants                             []int64  // in the order of their fences
}

// check compares the database with the models, and holds it to the guarantees.
func (s *sequence) check(rt *rapid.T) {
	const query = `
		SELECT version, granted_counter AS granted, accepted_counter AS accepted, barred_counter AS barred,
		       coalesce(lease_id, '') AS holding,
		       coalesce(visible_epoch || '.' || visible_counter || '/' || visible_object_id, '') AS shows,
		       (SELECT array_agg(fence_counter ORDER BY version) FROM publication p WHERE p.report_id = r.report_id) AS fences,
		       (SELECT array_agg(idempotency_key ORDER BY version) FROM publication p WHERE p.report_id = r.report_id) AS keys,
		       (SELECT array_agg(fence_counter ORDER BY fence_counter) FROM lease l WHERE l.report_id = r.report_id AND fence_counter > 0) AS grants
		FROM report r
		WHERE report_id = $1`
	for _, report := range s.reports {
		m := s.models[report]
		if !m.exists {
			continue
		}
		rows, err := s.db.Owner.Query(s.t.Context(), query, report)
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[state])
		if err != nil {
			s.t.Fatal(err)
		}
		want := state{Version: int64(len(m.versions)), Granted: m.granted, Accepted: m.accepted, Barred: m.barred, Holding: m.holding}
		for i, v := range m.versions {
			want.Fences, want.Keys, want.Shows = append(want.Fences, v.fence), append(want.Keys, v.key), v.shows
			if i > 0 && v.fence == m.versions[i-1].fence && v.expected != int64(i) {
				rt.Fatalf("version %d of one grant followed another without naming it", i+1)
			}
		}
		for fence := range m.granted {
			want.Grants = append(want.Grants, fence+1) // each once, none left out
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s (-model +database):\n%s", report, diff)
		}
		if !slices.IsSorted(got.Fences) {
			rt.Fatalf("a stale fence was applied: %v", got.Fences)
		}
		keys := slices.Sorted(slices.Values(got.Keys))
		if len(slices.Compact(keys)) != len(got.Keys) {
			rt.Fatalf("a key was applied twice: %v", got.Keys)
		}
	}
}
