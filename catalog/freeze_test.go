package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestAFreezeWaitsForThePublishUnderWayAndRefusesTheNext(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	seal := sealIn(d.db.Pool)
	wantErr(t, seal(t.Context(), fencing.ObjectName{Report: "july", Fence: f, Object: "a"}), nil)
	letGo := d.db.HoldReport(t, "july")
	before := d.publishing(t, object(f, "a", "before", expecting(0)), 1)
	frozen := make(chan error, 1)
	go func() { frozen <- d.Freeze(t.Context(), "july", "operator") }()
	d.db.AwaitWaiting(t, 2)
	after := d.publishing(t, object(f, "b", "after", expecting(1)), 3)
	select {
	case err := <-frozen:
		t.Fatalf("the freeze came back (%v) while a publish was under way", err)
	default:
	}
	letGo()
	if receipt, err := before(); err != nil || receipt.Version != 1 {
		t.Errorf("the publish under way got %+v, %v", receipt, err)
	}
	wantErr(t, <-frozen, nil)
	_, err := after()
	wantErr(t, err, fencing.ErrFrozen)
	d.shows(t, "a", f, 1)
	d.duplicate(t, object(f, "a", "before", expecting(0)), 1, true) // that is no change

	wantErr(t, d.Unfreeze(t.Context(), "july", "operator"), nil)
	d.applied(t, object(f, "b", "after", expecting(1)), 2)
}

func TestAFrozenReportOnlyResolvesRenewsAndReleases(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.ready(t, "july", "a7")
	k.next(t, f, "first", 1)
	k.next(t, f, "second", 2)
	wantErr(t, k.Freeze(t.Context(), "july", "operator"), nil)

	status := func(query string) string { return testdb.Value[string](t, k.db, "SELECT status FROM "+query) }
	for call, want := range map[string]string{
		"acquire('july', 'b9', 'holder', 60000)":                                          "frozen",
		"acquire('july', 'a7', 'holder', 60000)":                                          "replayed", // it holds already
		"revoke_lease('july', NULL, NULL, 'test', 'test')":                                "frozen",
		"reserve('july', 1, 1, 'c', '', NULL, NULL, NULL, NULL, 60000, 3600000, 'test')":  "frozen",
		"seal('july', 1, 1, 'a', 0, sha256(''), 'etag', NULL, 3600000)":                   "frozen",
		"discard('july', 1, 1, 'a', 1000)":                                                "frozen",
		"hold_version('july', 1, true, 'test')":                                           "frozen",
		"hold_version('july', 1, false, 'test')":                                          "frozen",
		"erase_version('july', 1, 'asked to', 'test', 1000)":                              "frozen",
		`change_settings('july', '{"keep_versions": 3}')`:                                 "frozen",
		"renew('july', 'a7', NULL)":                                                       "renewed",
		`publish('[{"report":"july","epoch":1,"counter":9,"idempotency_key":"k"}]')`:      "frozen", // before its fence is looked at
		"reserve('july2', 1, 1, 'c', '', NULL, NULL, NULL, NULL, 60000, 3600000, 'test')": "report_not_found",
	} {
		if got := status(call); got != want {
			t.Errorf("%s answered %q, want %q", call, got, want)
		}
	}
	k.shows(t, "second", f, 2)
	k.stands(t, f, "first", "kept within_retention")
	if n := testdb.Value[int](t, k.db, "SELECT count(*)::int FROM refusal"); n != 0 {
		t.Errorf("%d refusals were noted: a frozen report compares no fence", n)
	}
	if got := status("release('july', 'a7')"); got != "released" {
		t.Errorf("release answered %q", got)
	}
}

func TestTheCollectorLeavesWhatIsFrozenAlone(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.grant(t, "july", "a7")
	k.next(t, f, "first", 1)
	k.next(t, f, "second", 2)
	k.next(t, f, "third", 3)
	k.stage(t, "july", f, "staged")
	wantErr(t, k.Erase(t.Context(), "july", 1, "asked to", "test"), nil)
	wantErr(t, k.Freeze(t.Context(), "*", "operator"), nil)
	k.db.Advance(t, 100*step)
	k.collect(t)
	k.stands(t, f, "first", "condemned erased")
	k.stands(t, f, "second", "kept frozen")
	k.stands(t, f, "staged", "kept frozen")
	if !k.holds(t, fencing.ObjectName{Report: "july", Fence: f, Object: "first"}) {
		t.Error("the bytes of a condemned object went")
	}

	wantErr(t, k.Unfreeze(t.Context(), "*", "operator"), nil)
	k.collect(t)
	k.stands(t, f, "first", "deleted erased")
	k.stands(t, f, "second", "condemned superseded")
	k.stands(t, f, "staged", "condemned never_sealed")
	k.stands(t, f, "third", "kept visible")
}

func TestAPatternFreezesWhatItCoversAndNothingElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		pattern string
		covers  map[string]bool
	}{
		{"sales", map[string]bool{"sales": true, "sales.july": false, "sale": false}},
		{"sales.*", map[string]bool{"sales.july": true, "sales.": true, "sales": false, "salesXjuly": false}},
		{"a_b*", map[string]bool{"a_b": true, "a_bc": true, "aXb": false}},
		{"A*", map[string]bool{"Abc": true, "abc": false}},
		{"*", map[string]bool{"july": true}},
	} {
		for range 2 { // repeated it does nothing
			wantErr(t, d.Freeze(t.Context(), c.pattern, "operator"), nil)
		}
		for report, want := range c.covers {
			if got := testdb.Value[bool](t, d.db, "SELECT is_frozen($1)", report); got != want {
				t.Errorf("%q freezes %q: %v, want %v", c.pattern, report, got, want)
			}
		}
		frozen, err := d.FrozenReports(t.Context())
		if err != nil || len(frozen) != 1 || frozen[0].Pattern != c.pattern || frozen[0].FrozenBy != "operator" {
			t.Errorf("the freezes in force are %+v, %v, want %q", frozen, err, c.pattern)
		}
		wantErr(t, d.Unfreeze(t.Context(), c.pattern+"x", "operator"), nil) // another pattern lifts nothing
		for range 2 {
			wantErr(t, d.Unfreeze(t.Context(), c.pattern, "operator"), nil)
		}
		if frozen, err := d.FrozenReports(t.Context()); err != nil || !cmp.Equal(frozen, []catalog.Frozen{}) {
			t.Errorf("the freezes in force are %+v, %v, want none", frozen, err)
		}
	}
}
