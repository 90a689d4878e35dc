package gc_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

func TestWhatIsNotDueIsKeptAndWhatIsDueGoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	reserved, _, err := b.reserve(t.Context(), g, "reserved", "x")
	must(t, "reserve", err)
	sealed := b.stage(t, g, "sealed", "x")
	b.free(t, g)
	old := b.next(t, "july", "first")
	visible := b.next(t, "july", "second")
	c := b.collector()

	b.db.Advance(t, retention-time.Minute)
	if run := collect(t, c); run.Condemned+run.PutOff+run.Deleted != 0 {
		t.Errorf("before anything is due the pass did %+v", run)
	}
	b.db.Advance(t, 2*time.Minute)
	collect(t, c)
	b.db.Advance(t, superseded-retention-2*time.Minute)
	collect(t, c)
	b.wantState(t, old, staging.Sealed)
	b.db.Advance(t, 2*time.Minute)
	collect(t, c)
	b.db.Advance(t, 1000*time.Hour)
	collect(t, c)

	want := []string{
		"condemned never_sealed july/reserved", "condemned never_published july/sealed",
		"deleted never_published july/sealed", "deleted never_sealed july/reserved", "condemned superseded july/data",
		"deleted superseded july/data",
	}
	got := b.ledger(t)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the ledger (-want +got):\n%s", diff)
	}
	for _, name := range []fencing.ObjectName{reserved, sealed, old} {
		b.wantState(t, name, staging.Deleted)
	}
	if diff := cmp.Diff(keyOf(visible), b.keys(t)); diff != "" {
		t.Errorf("keys left (-want +got):\n%s", diff)
	}
	b.wantIntact(t)
}

// TestWhatACrashLeftBehindGoesAfterItsRetention leaves a worker's work lying at each point.
func TestWhatACrashLeftBehindGoesAfterItsRetention(t *testing.T) {
	t.Parallel()
	for point, work := range map[string]func(*testing.T, *bundle, lease.Grant) fencing.ObjectName{
		"between reserve and upload": func(t *testing.T, b *bundle, g lease.Grant) fencing.ObjectName {
			name, _, err := b.reserve(t.Context(), g, "data", "x")
			must(t, "reserve", err)
			return name
		},
		"between upload and seal": func(t *testing.T, b *bundle, g lease.Grant) fencing.ObjectName {
			name, r, err := b.reserve(t.Context(), g, "data", "x")
			must(t, "reserve", err)
			must(t, "upload", upload(t.Context(), r.Upload, "x"))
			return name
		},
		"between seal and publish": func(t *testing.T, b *bundle, g lease.Grant) fencing.ObjectName {
			return b.stage(t, g, "data", "x")
		},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			name := work(t, b, b.grant(t, "july"))
			b.db.Advance(t, retention+leaseTTL)
			collect(t, b.collector())
			b.wantState(t, name, staging.Condemned)
			b.db.Advance(t, grace)
			collect(t, b.collector())
			b.wantState(t, name, staging.Deleted)
			if keys := b.keys(t); keys != "" {
				t.Errorf("keys left: %s", keys)
			}
			if version := testdb.Value[int64](t, b.db, "SELECT version FROM report"); version != 0 {
				t.Errorf("version %d became visible", version)
			}
		})
	}
}

// works are what a long job has of its object while it works.
var works = map[string]func(*testing.T, *bundle, lease.Grant) fencing.ObjectName{
	"reserved": func(t *testing.T, b *bundle, g lease.Grant) fencing.ObjectName {
		name, r, err := b.reserve(t.Context(), g, "data", "x")
		must(t, "reserve", err)
		must(t, "upload", upload(t.Context(), r.Upload, "x"))
		return name
	},
	"sealed": func(t *testing.T, b *bundle, g lease.Grant) fencing.ObjectName { return b.stage(t, g, "data", "x") },
}

func TestALiveLeaseKeepsItsObjectForThreeRetentions(t *testing.T) {
	t.Parallel()
	for state, work := range works {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			name := work(t, b, g)
			var putOff int64
			for range 12 { // a quarter of the retention each
				b.renewFor(t, g, retention)
				b.db.Advance(t, retention/4)
				run := collect(t, b.collector(atOnce))
				putOff += run.PutOff
				if run.PutOff == 1 && !testdb.Value[bool](t, b.db, "SELECT eligible_at > fenceline_now() FROM object") {
					t.Error("it was put off, and would fill the next batch again")
				}
			}
			if putOff == 0 {
				t.Error("it was never put off")
			}
			b.wantState(t, name, staging.State(state))
			must(t, "publish", b.publish(t.Context(), name))
			b.wantIntact(t)
		})
	}
}

func (b *bundle) renewFor(t testing.TB, g lease.Grant, ttl time.Duration) {
	t.Helper()
	_, err := b.leases.Renew(t.Context(), g.Report, g.Lease, ttl)
	must(t, "renew", err)
}

func TestALiveLeaseKeepsItsObjectForSevenDaysAtMost(t *testing.T) {
	t.Parallel()
	for state, work := range works {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			const day = 24 * time.Hour
			b := setup(t)
			g := b.grant(t, "july")
			name := work(t, b, g)
			for range 7 {
				b.renewFor(t, g, 2*day)
				b.db.Advance(t, day-time.Minute)
				if run := collect(t, b.collector()); run.Condemned != 0 {
					t.Fatal("it was condemned within seven days")
				}
			}
			b.renewFor(t, g, 2*day)
			b.db.Advance(t, 8*time.Minute)
			if run := collect(t, b.collector()); run.Condemned != 1 {
				t.Errorf("%d objects were condemned after seven days, want 1", run.Condemned)
			}
			wantGone(t, b.publish(t.Context(), name))
			b.wantIntact(t)
		})
	}
}

// TestWithoutALiveLeaseOfItsOwnAnObjectIsNotPutOff ends the object's lease, in each way in which one ends.
func TestWithoutALiveLeaseOfItsOwnAnObjectIsNotPutOff(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *bundle, lease.Grant){
		"expired":  func(*testing.T, *bundle, lease.Grant) {},
		"released": func(t *testing.T, b *bundle, g lease.Grant) { b.renewFor(t, g, 2*retention); b.free(t, g) },
		"revoked": func(t *testing.T, b *bundle, g lease.Grant) {
			b.renewFor(t, g, 2*retention)
			_, err := b.leases.Revoke(t.Context(), lease.Revocation{Report: g.Report, Fence: g.Fence})
			must(t, "revoke", err)
		},
		"superseded": func(t *testing.T, b *bundle, g lease.Grant) {
			b.free(t, g)
			b.renewFor(t, b.grant(t, g.Report), 2*retention)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			x := b.stage(t, g, "data", "x")
			end(t, b, g)
			b.db.Advance(t, retention+leaseTTL)
			if run := collect(t, b.collector()); run.PutOff != 0 || run.Condemned != 1 {
				t.Errorf("%d put off and %d condemned, want 0 and 1", run.PutOff, run.Condemned)
			}
			if err := b.publish(t.Context(), x); err == nil {
				t.Error("it was published afterwards")
			}
			if version := testdb.Value[int64](t, b.db, "SELECT version FROM report"); version != 0 {
				t.Errorf("version %d became visible", version)
			}
		})
	}
}

// TestNamesThatBeginAlikeDoNotTouchOneAnother has one object after the other become due, or its grace end, among
// others whose names begin with its own, or would match it as a pattern.
func TestNamesThatBeginAlikeDoNotTouchOneAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	left := map[string]bool{}
	var due, discarded []fencing.ObjectName
	for _, report := range []fencing.ReportID{"a", "ab", "a.b", "a_b", "aXb", "A", "a.b.c"} {
		g := b.grant(t, report)
		visible := b.stage(t, g, "d", "visible")
		must(t, "publish", b.publish(t.Context(), visible))
		left[keyOf(visible)] = true
		for _, id := range []fencing.ObjectID{"d_", "dX"} {
			due = append(due, b.stage(t, g, id, "never published"))
			discarded = append(discarded, b.stage(t, g, id+".d", "discarded"))
			_, err := b.objects.Discard(t.Context(), discarded[len(discarded)-1])
			must(t, "discard", err)
			left[keyOf(due[len(due)-1])], left[keyOf(discarded[len(discarded)-1])] = true, true
		}
		b.free(t, g)
	}
	b.db.Advance(t, urlLife)
	c := b.collector(atOnce)
	for _, name := range due {
		b.db.Exec(t, "UPDATE object SET eligible_at = fenceline_now() WHERE key = $1", keyOf(name))
		if run := collect(t, c); run.Condemned != 1 || run.Deleted != 1 || run.Forgotten != 1 {
			t.Errorf("%v: %d condemned, %d deleted and %d forgotten, want 1 each", name, run.Condemned, run.Deleted, run.Forgotten)
		}
		delete(left, keyOf(name))
		b.wantKeys(t, left)
	}
	for _, name := range discarded {
		b.db.Exec(t, "UPDATE object SET purge_after = fenceline_now() WHERE key = $1", keyOf(name))
		if run := collect(t, c); run.Deleted != 1 || run.Forgotten != 1 {
			t.Errorf("%v: %d deleted and %d forgotten, want 1 each", name, run.Deleted, run.Forgotten)
		}
		delete(left, keyOf(name))
		b.wantKeys(t, left)
	}
	b.wantIntact(t)
}

// wantKeys fails the test unless these keys, and no others, are in the bucket.
func (b *bundle) wantKeys(t testing.TB, want map[string]bool) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), b.storage.Keys(t)); diff != "" {
		t.Fatalf("keys (-want +got):\n%s", diff)
	}
}
