package catalog_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

func TestAReportIsUnderItsOwnSettingsAndTheServicesForTheRest(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	if _, err := k.Settings(t.Context(), "july"); !errors.Is(err, fencing.ErrReportNotFound) {
		t.Errorf("the settings of an unknown report: %v", err)
	}
	got := k.change(t, func(c catalog.Changes) { // makes the report
		c.SetFencing(new(catalog.Live))
		c.SetPublishesPerGrant(new(catalog.One))
		c.SetRetention(new(long))
		c.SetKeepVersions(new(3))
	})
	want := catalog.Settings{
		Fencing: catalog.Live, PublishesPerGrant: catalog.One, Retention: long, KeepVersions: 3,
		Own: []string{"fencing", "publishes_per_grant", "retention_ms", "keep_versions"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("its own settings (-want +got):\n%s", diff)
	}
	got = k.change(t, func(c catalog.Changes) { c.SetKeepVersions(nil); c.SetFencing(nil) })
	want.Fencing, want.KeepVersions, want.Own = catalog.Granted, 0, []string{"publishes_per_grant", "retention_ms"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with two given back (-want +got):\n%s", diff)
	}

	k.defaults(t, catalog.Config{Fencing: catalog.Accepted, Retention: short, KeepVersions: 7})
	want.Fencing, want.KeepVersions = catalog.Accepted, 7
	if got, err := k.Settings(t.Context(), "july"); err != nil || !cmp.Equal(got, want) {
		t.Errorf("by other defaults: %+v, %v, want %+v", got, err, want)
	}
}

func TestASettingThatCannotBeChangesNothing(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	before := k.change(t, keeping(3))
	for name, set := range map[string]func(catalog.Changes){
		"fencing":             func(c catalog.Changes) { c.SetFencing(new(catalog.Mode("fast"))) },
		"publishes_per_grant": func(c catalog.Changes) { c.SetPublishesPerGrant(new(catalog.PublishesPerGrant("two"))) },
		"keep_versions":       keeping(catalog.MostKeptVersions + 1),
		"keep_versions below": keeping(-1),
		"retention_ms":        retaining(time.Hour), // as short as the time in which a restore may bring it back
		"retention_ms above":  retaining(forever),
	} {
		changes := catalog.Changes{}
		set(changes)
		_, err := k.ChangeSettings(t.Context(), "july", changes)
		wantErr(t, err, catalog.ErrInvalidSetting)
		if invalid, ok := errors.AsType[*catalog.SettingError](err); !ok || len(name) < len(invalid.Name) || name[:len(invalid.Name)] != invalid.Name {
			t.Errorf("%s: %v names another setting", name, err)
		}
	}
	if after, err := k.Settings(t.Context(), "july"); err != nil || !cmp.Equal(before, after) {
		t.Errorf("the settings are %+v, %v, want %+v", after, err, before)
	}
}

// The decisive race, decided again after each switch: a is the grant that was taken over, b its successor.
func TestEachModeComparesWithItsOwnBarWhateverTheModesBefore(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	mode := func(m catalog.Mode) { k.change(t, func(c catalog.Changes) { c.SetFencing(&m) }) }
	a := k.ready(t, "july", "a7")
	k.db.Advance(t, 2*ttl)
	b := k.ready(t, "july", "b9")

	mode(catalog.Granted)
	k.stale(t, object(a, "a", "early"), b, "superseded") // by the grant alone
	mode(catalog.Live)
	k.stale(t, object(a, "a", "early"), b, "superseded")
	mode(catalog.Accepted)
	k.applied(t, object(a, "a", "k1"), 1) // the successor has not published
	mode(catalog.Live)
	k.db.Advance(t, 2*ttl)
	k.refused(t, object(b, "a", "k2"), fencing.ErrLeaseNotLive)
	mode(catalog.Granted)
	k.stale(t, object(a, "b", "late", expecting(1)), b, "superseded")
	k.applied(t, object(b, "a", "k2"), 2) // nobody has taken the lease since it expired
	for _, m := range []catalog.Mode{catalog.Accepted, catalog.Live, catalog.Granted, catalog.Accepted} {
		mode(m)
		k.stale(t, object(a, "b", "late", expecting(2)), b, "superseded")
	}
	k.change(t, func(c catalog.Changes) { c.SetPublishesPerGrant(new(catalog.One)) })
	k.refused(t, object(b, "b", "k3", expecting(2)), catalog.ErrGrantAlreadyUsed)
	k.change(t, func(c catalog.Changes) { c.SetPublishesPerGrant(nil) })
	k.applied(t, object(b, "b", "k3", expecting(2)), 3)
	k.shows(t, "b", b, 3)
}

func TestAChangedRetentionCountsForWhatWaitsAlready(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.grant(t, "july", "a7")
	k.next(t, f, "first", 1)
	k.next(t, f, "second", 2)
	k.db.Advance(t, 4*step) // past the short one
	k.stands(t, f, "first", "due superseded")
	k.change(t, retaining(long))
	k.collect(t)
	k.stands(t, f, "first", "kept within_retention")
	k.change(t, retaining(short)) // counted from when it was superseded, not from now
	k.stands(t, f, "first", "due superseded")
	k.change(t, retaining(long))
	k.db.Advance(t, 5*step)
	k.change(t, func(c catalog.Changes) { c.SetRetention(nil) })
	k.collect(t)
	k.stands(t, f, "first", "condemned superseded")
	k.change(t, retaining(long))
	k.stands(t, f, "first", "condemned superseded") // that is final
	k.stands(t, f, "second", "kept visible")
}

func TestAChangedDefaultCountsForWhatWaitsAndNotForWhatHasARetentionOfItsOwn(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.grant(t, "july", "a7")
	k.next(t, f, "first", 1)
	k.next(t, f, "second", 2)
	k.db.Advance(t, 4*step)
	k.defaults(t, catalog.Config{Retention: long})
	k.collect(t)
	k.stands(t, f, "first", "kept within_retention")
	k.change(t, retaining(long))
	k.defaults(t, catalog.Config{Retention: short})
	k.collect(t)
	k.stands(t, f, "first", "kept within_retention") // by the report's own setting
	k.change(t, func(c catalog.Changes) { c.SetRetention(nil) })
	k.defaults(t, catalog.Config{Retention: long})
	k.stands(t, f, "first", "kept within_retention")
	k.defaults(t, catalog.Config{Retention: short})
	k.collect(t)
	k.stands(t, f, "first", "condemned superseded")
}

func TestVersionsThatAreKeptNoLongerWaitForTheirRetention(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(*testing.T, keeper, int){
		"by the report": func(t *testing.T, k keeper, n int) { k.change(t, keeping(n)) },
		"by default": func(t *testing.T, k keeper, n int) {
			k.defaults(t, catalog.Config{Retention: short, KeepVersions: n})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t)
			f := k.grant(t, "july", "a7")
			keep(t, k, 1)
			k.next(t, f, "first", 1)
			k.next(t, f, "second", 2)
			k.next(t, f, "third", 3)
			keep(t, k, 3)
			k.next(t, f, "fourth", 4)
			k.db.Advance(t, 100*step)
			k.collect(t)
			for _, id := range []string{"first", "second", "third"} {
				k.stands(t, f, id, "kept kept_version") // the first had begun to wait
			}
			keep(t, k, 1)
			for _, id := range []string{"first", "second"} {
				k.stands(t, f, id, "kept within_retention") // from now on, not from when it was superseded
			}
			k.db.Advance(t, 4*step)
			k.collect(t)
			k.stands(t, f, "first", "condemned superseded")
			k.stands(t, f, "second", "condemned superseded")
			k.stands(t, f, "third", "kept kept_version")
			k.stands(t, f, "fourth", "kept visible")
		})
	}
}

func TestAPublishAndAChangeOfWhatIsKeptAreDecidedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.grant(t, "july", "a7")
	k.next(t, f, "first", 1)
	k.stage(t, "july", f, "second")
	letGo := k.db.HoldReport(t, "july")
	publish := k.publishing(t, object(f, "second", "k2", expecting(1)), 1)
	changed := make(chan error, 1)
	go func() {
		changes := catalog.Changes{}
		keeping(1)(changes)
		_, err := k.ChangeSettings(t.Context(), "july", changes)
		changed <- err
	}()
	k.db.AwaitWaiting(t, 2)
	letGo()
	if _, err := publish(); err != nil {
		t.Error(err)
	}
	if err := <-changed; err != nil {
		t.Error(err)
	}
	k.stands(t, f, "first", "kept kept_version")
}
