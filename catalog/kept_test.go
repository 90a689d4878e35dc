package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

// One report, and whatever may be done with its versions: after each step every object must be as the model says,
// its bytes must be there until it is deleted, and not after. On a slow machine fewer sequences are tried.
func TestWhatAReaderMayStillGetIsAlwaysThereAndWhatIsDueGoes(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	const enough = 15 * time.Second
	began, failed, round := time.Now(), false, 0
	rapid.Check(t, func(rt *rapid.T) {
		if time.Since(began) > enough && !failed {
			return
		}
		defer func() { failed = failed || rt.Failed() }() // to be made shorter, however long that takes
		k.clear(t)
		round++
		report := fencing.ReportID(fmt.Sprintf("july.%d", round))
		s := &keptSequence{
			keeper: k, t: t, report: report, fence: k.grant(t, string(report), "a7"),
			model: &keepingModel{
				grace: hours(grace), defaultRetention: hours(short), objects: map[fencing.ObjectID]*kept{},
			},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"publish": s.publish, "publish next": s.publish, "publish more": s.publish, "roll back": s.rollBack, "withdraw": s.withdraw,
			"hold": s.hold, "erase": s.erase, "freeze": s.freeze,
			"change": s.change, "defaults": s.changeDefaults,
			"advance": s.advance, "advance more": s.advance, "collect": s.pass, "collect again": s.pass,
			"": s.check,
		})
	})
	if t.Logf("%d sequences", round); round < 10 {
		t.Errorf("only %d sequences were tried", round)
	}
}

// clear takes what the sequences before have left out of the next one's way.
func (k keeper) clear(t *testing.T) {
	k.db.Exec(t, "DELETE FROM frozen_reports")
	k.db.Exec(t, "UPDATE report SET keep_versions = 0")
	k.defaults(t, catalog.Config{Retention: short})
}

func hours(d time.Duration) int { return int(d / time.Hour) }

// keptSequence is one run of operations against the product and the model at once.
type keptSequence struct {
	keeper
	t      *testing.T
	report fencing.ReportID
	fence  fencing.Fence
	model  *keepingModel
	asked  int
}

// same fails the check unless the product answered as the model did.
func same(rt *rapid.T, got, want error) {
	rt.Helper()
	if !errors.Is(got, want) {
		rt.Fatalf("the answer is %v, want %v", got, want)
	}
}

// send publishes what edit says, as the next version.
func (s *keptSequence) send(edit func(*catalog.Request)) error {
	s.asked++
	r := object(s.fence, "", "k"+strconv.Itoa(s.asked), expecting(int64(len(s.model.versions))), edit)
	r.Report = s.report
	_, err := s.Publish(s.t.Context(), r)
	return err
}

// draw takes a version, mostly one that there is.
func (s *keptSequence) draw(rt *rapid.T) int64 {
	return rapid.Int64Range(1, int64(len(s.model.versions))+1).Draw(rt, "version")
}

func (s *keptSequence) publish(rt *rapid.T) {
	id := fencing.ObjectID("o" + strconv.Itoa(s.asked+1))
	if !s.model.frozen {
		s.stage(s.t, string(s.report), s.fence, string(id))
	}
	same(rt, s.send(func(r *catalog.Request) { r.Object = id }), s.model.show(id))
}

func (s *keptSequence) withdraw(rt *rapid.T) {
	same(rt, s.send(func(r *catalog.Request) { r.Withdraw = true }), s.model.show(""))
}

func (s *keptSequence) rollBack(rt *rapid.T) {
	version := s.draw(rt)
	same(rt, s.send(func(r *catalog.Request) { r.FromVersion = version }), s.model.rollBack(version))
}

func (s *keptSequence) hold(rt *rapid.T) {
	version, hold := s.draw(rt), rapid.Bool().Draw(rt, "hold")
	call := s.Unhold
	if hold {
		call = s.Hold
	}
	same(rt, call(s.t.Context(), s.report, version, "test"), s.model.hold(version, hold))
}

func (s *keptSequence) erase(rt *rapid.T) {
	version := s.draw(rt)
	same(rt, s.Erase(s.t.Context(), s.report, version, "asked to", "test"), s.model.erase(version))
}

// freeze freezes, or more often lifts it.
func (s *keptSequence) freeze(rt *rapid.T) {
	s.model.frozen = rapid.IntRange(0, 3).Draw(rt, "freeze") == 0
	call := s.Unfreeze
	if s.model.frozen {
		call = s.Freeze
	}
	same(rt, call(s.t.Context(), string(s.report), "test"), nil)
}

func drawSettings(rt *rapid.T) (keep int, retention time.Duration) {
	return rapid.IntRange(0, 3).Draw(rt, "keep"), rapid.SampledFrom([]time.Duration{short, long}).Draw(rt, "retention")
}

// change changes the report's own settings, or gives them back.
func (s *keptSequence) change(rt *rapid.T) {
	keep, retention := drawSettings(rt)
	changes, m := catalog.Changes{}, s.model
	var want error
	if m.frozen {
		want = fencing.ErrFrozen
		m = &keepingModel{} // nothing changes
	}
	switch rapid.IntRange(0, 3).Draw(rt, "setting") {
	case 0:
		changes.SetKeepVersions(&keep)
		m.keep = &keep
	case 1:
		changes.SetKeepVersions(nil)
		m.keep = nil
	case 2:
		changes.SetRetention(&retention)
		m.retention = new(hours(retention))
	case 3:
		changes.SetRetention(nil)
		m.retention = nil
	}
	m.settle()
	_, err := s.ChangeSettings(s.t.Context(), s.report, changes)
	same(rt, err, want)
}

func (s *keptSequence) changeDefaults(rt *rapid.T) {
	keep, retention := drawSettings(rt)
	s.defaults(s.t, catalog.Config{KeepVersions: keep, Retention: retention})
	s.model.defaultKeep, s.model.defaultRetention = keep, hours(retention)
	s.model.settle()
}

func (s *keptSequence) advance(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{step, 4 * step}).Draw(rt, "ahead")
	s.model.now += hours(d)
	s.db.Advance(s.t, d)
}

func (s *keptSequence) pass(*rapid.T) {
	s.collect(s.t)
	s.model.collect()
}

// check compares every object and version with the model, and the storage with both.
func (s *keptSequence) check(rt *rapid.T) {
	const query = `
		SELECT o.object_id, o.state, e.verdict || ' ' || e.reason AS stands
		FROM object o
		CROSS JOIN LATERAL explain_object(report_id, fence_epoch, fence_counter, object_id) e
		WHERE o.report_id = $1`
	type row struct {
		ObjectID      fencing.ObjectID
		State, Stands string
	}
	rows, err := s.db.Owner.Query(s.t.Context(), query, s.report)
	if err != nil {
		s.t.Fatal(err)
	}
	objects, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		s.t.Fatal(err)
	}
	keys := s.storage.Keys(s.t)
	want, got := map[fencing.ObjectID]string{}, map[fencing.ObjectID]string{}
	for id, o := range s.model.objects {
		want[id] = o.state + ", " + s.model.stands(id)
	}
	for _, o := range objects {
		got[o.ObjectID] = o.State + ", " + o.Stands
		there := slices.Contains(keys, keyOf(fencing.ObjectName{Report: s.report, Fence: s.fence, Object: o.ObjectID}))
		if there == (o.State == "deleted") {
			rt.Fatalf("object %q is %s, and its bytes are there: %v", o.ObjectID, o.State, there)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		rt.Fatalf("objects at hour %d (-model +database):\n%s", s.model.now, diff)
	}
	versions, err := s.Versions(s.t.Context(), s.report, 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	said := make([]string, len(versions))
	for _, p := range versions {
		v := shown{held: p.HeldAt != nil, erased: p.ErasedAt != nil}
		if p.Object != nil {
			v.object = p.Object.Name.Object
		}
		said[p.Version-1] = v.String()
	}
	for i, v := range s.model.versions {
		if v.String() != said[i] {
			rt.Fatalf("version %d: %s, want %s", i+1, said[i], v)
		}
	}
}
