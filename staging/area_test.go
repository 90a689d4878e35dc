package staging_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// bundle is a staging area on a database and a bucket of its own, and those who work with it.
type bundle struct {
	db      *testdb.DB
	storage *testbucket.Bucket
	objects *staging.Area
	leases  *lease.Authority
	catalog *catalog.Catalog
}

// The periods of a bundle.
const (
	retention = 24 * time.Hour
	grace     = 10 * time.Hour
)

func setup(t testing.TB) *bundle {
	t.Helper()
	return setupOn(t, testbucket.New(t))
}

func setupOn(t testing.TB, storage *testbucket.Bucket) *bundle {
	t.Helper()
	db := testdb.New(t)
	b := &bundle{db: db, storage: storage, leases: lease.New(db.Pool)}
	b.objects = staging.New(db.Pool, storage.Open(t), staging.Config{UploadURLLife: life, Retention: retention, PurgeGrace: grace})
	b.catalog = catalog.New(db.Pool, func(ctx context.Context, name fencing.ObjectName) error {
		_, err := b.objects.Seal(ctx, name)
		return err
	}, catalog.Config{})
	return b
}

// grant acquires a lease of a report that is free.
func (b *bundle) grant(t testing.TB, report fencing.ReportID) lease.Grant {
	t.Helper()
	g, err := b.leases.Acquire(t.Context(), lease.Request{
		Report: report, Lease: fencing.LeaseID(uuid.NewString()), Holder: "test", TTL: time.Minute,
	})
	must(t, "acquire", err)
	return g
}

// reserved reserves an object of a new grant, with what is declared of it.
func (b *bundle) reserved(t testing.TB, d staging.Declaration) (fencing.ObjectName, staging.Reservation) {
	t.Helper()
	g := b.grant(t, "july")
	name := fencing.ObjectName{Report: g.Report, Fence: g.Fence, Object: "july.csv"}
	r, err := b.objects.Reserve(t.Context(), name, d)
	must(t, "reserve", err)
	return name, r
}

// sealed seals an object with the body, of which nothing was declared.
func (b *bundle) sealed(t testing.TB, body string) fencing.ObjectName {
	t.Helper()
	name, r := b.reserved(t, staging.Declaration{})
	if status := send(t, r.Upload, body); status != http.StatusOK {
		t.Fatalf("the upload was answered %d", status)
	}
	_, err := b.objects.Seal(t.Context(), name)
	must(t, "seal", err)
	return name
}

func (b *bundle) publish(ctx context.Context, name fencing.ObjectName) error {
	_, err := b.catalog.Publish(ctx, catalog.Request{
		Report: name.Report, Fence: name.Fence, Object: name.Object, IdempotencyKey: "k",
	})
	return err
}

// nextEpoch makes the database one whose identity is new, and has it verified.
func (b *bundle) nextEpoch(t testing.TB) {
	t.Helper()
	b.db.Exec(t, "VACUUM FULL report")
	_, advanced, err := b.leases.VerifyEpoch(t.Context())
	must(t, "verify the identity", err)
	if !advanced {
		t.Fatal("no new epoch has begun")
	}
}

func (b *bundle) wantState(t testing.TB, name fencing.ObjectName, want staging.State) {
	t.Helper()
	o, err := b.objects.Object(t.Context(), name)
	must(t, "read the object", err)
	if o.State != want {
		t.Errorf("the object is %s, want %s", o.State, want)
	}
}

// wantError fails the test unless err is want.
func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestReserveIsRefusedByEveryVerdictOfTheFence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil  func(*testing.T, *bundle, *fencing.ObjectName)
		want   error
		reason string // where it is stale
	}{
		"a report that nobody has leased": {
			func(_ *testing.T, _ *bundle, n *fencing.ObjectName) { n.Report = "august" }, fencing.ErrReportNotFound, "",
		},
		"a newer grant": {func(t *testing.T, b *bundle, n *fencing.ObjectName) {
			b.db.Advance(t, time.Hour)
			b.grant(t, n.Report)
		}, fencing.ErrStaleFence, "superseded"},
		"a revocation": {func(t *testing.T, b *bundle, n *fencing.ObjectName) {
			_, err := b.leases.Revoke(t.Context(), lease.Revocation{Report: n.Report})
			must(t, "revoke", err)
		}, fencing.ErrStaleFence, "revoked"},
		"a closed epoch": {func(t *testing.T, b *bundle, _ *fencing.ObjectName) {
			b.db.Exec(t, `
				INSERT INTO epoch
				SELECT 2, 2, began_at, reason, system_identifier, timeline, postmaster_started_at, database_oid, report_filenode
				FROM epoch`)
		}, fencing.ErrStaleFence, "epoch_closed"},
		"a fence that was made up": {
			func(_ *testing.T, _ *bundle, n *fencing.ObjectName) { n.Fence.Counter += 1000 }, fencing.ErrNotGranted, "",
		},
		"a lease that is not live, in the mode live": {func(t *testing.T, b *bundle, _ *fencing.ObjectName) {
			b.db.Exec(t, "UPDATE report SET fencing = 'live'")
			b.db.Advance(t, time.Hour)
		}, fencing.ErrLeaseNotLive, ""},
		"an identity in doubt": {
			func(t *testing.T, b *bundle, _ *fencing.ObjectName) { b.db.Exec(t, "VACUUM FULL report") }, database.ErrEpochInDoubt, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			n := fencing.ObjectName{Report: "july", Fence: g.Fence, Object: "july.csv"}
			tc.spoil(t, b, &n)
			_, err := b.objects.Reserve(t.Context(), n, staging.Declaration{})
			wantError(t, err, tc.want)
			if stale, ok := errors.AsType[*fencing.StaleError](err); ok && (stale.Reason != tc.reason || stale.Presented != n.Fence) {
				t.Errorf("it is stale as %+v, want %s presented, and %s", stale, n.Fence, tc.reason)
			}
			if rows := testdb.Value[int](t, b.db, "SELECT count(*) FROM object"); rows != 0 {
				t.Errorf("%d objects were reserved", rows)
			}
		})
	}
}

func TestAnExpiredLeaseThatNobodyTookStillReserves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	b.db.Advance(t, time.Hour)
	r, err := b.objects.Reserve(t.Context(), fencing.ObjectName{Report: "july", Fence: g.Fence, Object: "a"}, staging.Declaration{})
	must(t, "reserve", err)
	if want := "reports/july/" + g.Fence.String() + "/a"; r.Key != want || r.Repeated {
		t.Errorf("reserved was %+v, want the key %s for the first time", r, want)
	}
}

func TestReserveRepeatedHandsOutAFreshURL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declared := staging.Declaration{ContentType: "text/csv", Filename: "july.csv", Size: new(int64(4)), SHA256: sum("a,b\n")}
	name, first := b.reserved(t, declared)
	const until = "SELECT upload_until FROM object"
	before := testdb.Value[time.Time](t, b.db, until)

	b.db.Advance(t, time.Minute)
	again, err := b.objects.Reserve(t.Context(), name, declared)
	must(t, "reserve again", err)
	if !again.Repeated || again.Key != first.Key {
		t.Errorf("the repeated reservation is %+v, want a repeated one of the same key", again)
	}
	if after := testdb.Value[time.Time](t, b.db, until); after.Sub(before) < time.Minute {
		t.Errorf("the last upload URL ends at %v, and before the repetition at %v: want a minute later", after, before)
	}
	b.db.Advance(t, -time.Hour) // a clock that steps back takes nothing back
	_, err = b.objects.Reserve(t.Context(), name, declared)
	must(t, "reserve a third time", err)
	if after := testdb.Value[time.Time](t, b.db, until); after.Sub(before) < time.Minute {
		t.Errorf("the last upload URL ends at %v, earlier than was handed out", after)
	}
	if status := send(t, again.Upload, "a,b\n"); status != http.StatusOK {
		t.Errorf("the fresh URL was answered %d", status)
	}
	if status := send(t, first.Upload, "a,b\n"); status != http.StatusPreconditionFailed {
		t.Errorf("the first URL was answered %d once the bytes were there, want 412", status)
	}
}

func TestReserveWithAnotherDeclarationIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	full := staging.Declaration{ContentType: "text/csv", Filename: "a.csv", Size: new(int64(1)), SHA256: sum("a")}
	name, _ := b.reserved(t, full)
	other := func(change func(*staging.Declaration)) staging.Declaration {
		d := full
		change(&d)
		return d
	}
	for what, d := range map[string]staging.Declaration{
		"another type":     other(func(d *staging.Declaration) { d.ContentType = "text/plain" }),
		"another filename": other(func(d *staging.Declaration) { d.Filename = "b.csv" }),
		"another size":     other(func(d *staging.Declaration) { d.Size = new(int64(2)) }),
		"no size":          other(func(d *staging.Declaration) { d.Size = nil }),
		"another digest":   other(func(d *staging.Declaration) { d.SHA256 = sum("b") }),
		"nothing at all":   {},
	} {
		_, err := b.objects.Reserve(t.Context(), name, d)
		if !errors.Is(err, staging.ErrIDReused) {
			t.Errorf("%s: got error %v, want that the id is in use", what, err)
		}
	}
}

func TestNothingIsReservedTwiceOnceItHasBytesOrIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := b.sealed(t, "x")
	_, err := b.objects.Reserve(t.Context(), sealed, staging.Declaration{})
	wantError(t, err, staging.ErrExists)
	_, err = b.objects.Reserve(t.Context(), sealed, staging.Declaration{Filename: "other"})
	wantError(t, err, staging.ErrIDReused)

	_, err = b.objects.Discard(t.Context(), sealed)
	must(t, "discard", err)
	_, err = b.objects.Reserve(t.Context(), sealed, staging.Declaration{})
	wantError(t, err, staging.ErrExists)
}

func TestDiscardCondemnsWhatWasNeverPublished(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reserved, _ := b.reserved(t, staging.Declaration{})
	b.db.Advance(t, time.Hour) // another takes the lease: the worker that clears up is stale by now
	sealed := b.sealed(t, "x")
	for _, name := range []fencing.ObjectName{reserved, sealed} {
		for range 2 {
			state, err := b.objects.Discard(t.Context(), name)
			must(t, "discard", err)
			if state != staging.Condemned {
				t.Errorf("discarded it is %s, want condemned", state)
			}
		}
	}
	_, err := b.objects.Discard(t.Context(), fencing.ObjectName{Report: "july", Fence: sealed.Fence, Object: "other"})
	wantError(t, err, fencing.ErrObjectNotFound)
	_, err = b.objects.Discard(t.Context(), fencing.ObjectName{Report: "june", Fence: sealed.Fence, Object: "july.csv"})
	wantError(t, err, fencing.ErrObjectNotFound)
	wantError(t, b.publish(t.Context(), sealed), fencing.ErrObjectGone)
}

func TestDiscardLeavesWhatWasEverPublished(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.sealed(t, "first")
	must(t, "publish", b.publish(t.Context(), first))
	_, err := b.objects.Discard(t.Context(), first)
	wantError(t, err, staging.ErrInUse)

	b.db.Advance(t, time.Hour)
	second := b.sealed(t, "second")
	_, err = b.catalog.Publish(t.Context(), catalog.Request{Report: "july", Fence: second.Fence, Object: second.Object, IdempotencyKey: "k2"})
	must(t, "publish", err)
	_, err = b.objects.Discard(t.Context(), first)
	wantError(t, err, staging.ErrInUse)
	b.wantState(t, first, staging.Sealed)
}

// TestDiscardAndPublishOfOneObjectHaveAnOrder has both wait at the report's lock.
func TestDiscardAndPublishOfOneObjectHaveAnOrder(t *testing.T) {
	t.Parallel()
	for _, discardFirst := range []bool{true, false} {
		b := setup(t)
		name := b.sealed(t, "x")
		letGo := b.db.HoldReport(t, "july")
		discarding, publishing := make(chan error, 1), make(chan error, 1)
		both := []func(){
			func() {
				_, err := b.objects.Discard(t.Context(), name)
				discarding <- err
			},
			func() { publishing <- b.publish(t.Context(), name) },
		}
		if !discardFirst {
			both[0], both[1] = both[1], both[0]
		}
		for i, call := range both {
			go call()
			b.db.AwaitWaiting(t, i+1)
		}
		letGo()
		discarded, published := <-discarding, <-publishing
		if discardFirst {
			must(t, "discard", discarded)
			wantError(t, published, fencing.ErrObjectGone)
			b.wantState(t, name, staging.Condemned)
		} else {
			must(t, "publish", published)
			wantError(t, discarded, staging.ErrInUse)
			b.wantState(t, name, staging.Sealed)
		}
	}
}

func TestAnObjectTellsWhyItIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.sealed(t, "x")
	explain := func() string {
		o, err := b.objects.Object(t.Context(), name)
		must(t, "read the object", err)
		return o.Verdict + " " + o.Reason
	}
	told := []string{explain()}
	b.db.Advance(t, retention+time.Minute)
	told = append(told, explain())
	b.db.Advance(t, -retention)
	must(t, "publish", b.publish(t.Context(), name))
	told = append(told, explain())
	if diff := cmp.Diff([]string{"kept within_retention", "due never_published", "kept visible"}, told); diff != "" {
		t.Errorf("what it tells (-want +got):\n%s", diff)
	}
}

func TestObjectsAreListedNewestGrantFirstAndNoneTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []string
	for range 3 {
		g := b.grant(t, "july")
		for _, id := range []fencing.ObjectID{"b", "a", "c"} {
			_, err := b.objects.Reserve(t.Context(), fencing.ObjectName{Report: "july", Fence: g.Fence, Object: id}, staging.Declaration{})
			must(t, "reserve", err)
		}
		want = append([]string{g.Fence.String() + "/a", g.Fence.String() + "/b", g.Fence.String() + "/c"}, want...)
		b.db.Advance(t, time.Hour)
	}
	var got []string
	for after := (staging.After{}); len(got) <= len(want); {
		page, err := b.objects.Objects(t.Context(), "july", staging.Filter{State: staging.Reserved}, after, 2)
		must(t, "list objects", err)
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			got = append(got, strings.TrimPrefix(o.Key, "reports/july/"))
			after = staging.After{Fence: o.Name.Fence, Object: o.Name.Object}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	same, err := b.objects.Objects(t.Context(), "july", staging.Filter{Object: "a"}, staging.After{}, 10)
	if err != nil || len(same) != 3 || same[0].Name.Object != "a" || same[2].Name.Object != "a" {
		t.Errorf("of one id it lists %v, error %v; want that of each of three grants", same, err)
	}
	none, err := b.objects.Objects(t.Context(), "july", staging.Filter{State: staging.Sealed}, staging.After{}, 10)
	if err != nil || len(none) != 0 {
		t.Errorf("of those that are sealed it lists %v, error %v; want none", none, err)
	}
	_, err = b.objects.Objects(t.Context(), "june", staging.Filter{}, staging.After{}, 10)
	wantError(t, err, fencing.ErrReportNotFound)
}
