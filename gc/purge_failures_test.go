package gc_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

func TestThreeErrorsAmongAThousandLeaveTheOthersDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "july", 1000)
	refusing, asked := true, 0
	d := &deletes{Bucket: b.bucket, answer: func(ref staging.ObjectRef) error {
		asked++
		if refusing && (strings.HasSuffix(ref.Key, "/000001") || strings.HasSuffix(ref.Key, "/000500") || strings.HasSuffix(ref.Key, "/001000")) {
			return errors.New("internal error")
		}
		return nil
	}}
	c := b.collectorOn(d, instant, func(cfg *gc.Config) { cfg.Batch = staging.MaxDeletes })
	if run := collect(t, c); run.Deleted != 997 || run.DeleteFailed != 3 || run.DeletedBytes != 9970 {
		t.Errorf("%d deleted (%d bytes), %d failed; want 997 (9970), 3", run.Deleted, run.DeletedBytes, run.DeleteFailed)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_ledger WHERE action = 'delete_failed' AND detail = 'internal error'"); n != 3 {
		t.Errorf("%d failures are in the ledger, want 3", n)
	}
	refusing, asked = false, 0
	b.db.Advance(t, 2*time.Minute)
	if run := collect(t, c); run.Deleted != 3 || asked != 3 {
		t.Errorf("%d deleted of %d that were asked for, want the 3 that were left", run.Deleted, asked)
	}
}

func TestAnObjectThatIsRefusedTenTimesIsStuckAndTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.stage(t, b.grant(t, "july"), "data", "x")
	_, err := b.objects.Discard(t.Context(), name)
	must(t, "discard", err)
	b.db.Advance(t, grace+urlLife)
	refusing := true
	d := &deletes{Bucket: b.bucket, answer: func(staging.ObjectRef) error {
		if refusing {
			return errors.New("access denied")
		}
		return nil
	}}
	c := b.collectorOn(d)
	before, err := b.objects.Object(t.Context(), name)
	must(t, "read the object", err)
	if before.Failure != nil {
		t.Errorf("it failed before it was tried: %+v", before.Failure)
	}
	for attempt := 1; attempt <= 11; attempt++ {
		if run := collect(t, c); run.DeleteFailed != 1 {
			t.Fatalf("attempt %d: %d failed, want 1", attempt, run.DeleteFailed)
		}
		o, err := b.objects.Object(t.Context(), name)
		must(t, "read the object", err)
		if f := o.Failure; f == nil || f.Attempts != attempt || f.Error != "access denied" || f.Stuck() != (attempt >= 10) {
			t.Errorf("after attempt %d it says %+v", attempt, f)
		}
		if !o.Until.Equal(*before.Until) {
			t.Errorf("from when it may go moved from %v to %v", before.Until, o.Until)
		}
		b.db.Advance(t, 6*time.Hour)
	}
	refusing = false
	if run := collect(t, c); run.Deleted != 1 {
		t.Errorf("%d deleted at last, want 1", run.Deleted)
	}
	if o, err := b.objects.Object(t.Context(), name); err != nil || o.Failure != nil || o.State != staging.Deleted {
		t.Errorf("it is %+v, error %v; want deleted, and no failure", o, err)
	}
}

func TestAMillionObjectsThatWereNeverSealedNeedNoListingEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "july", 60)
	left := b.begun(t, b.grant(t, "august"), "data")
	b.db.Advance(t, retention+leaseTTL)
	var listings atomic.Int32
	proxy := b.storage.Proxy(t)
	bucket := b.storage.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Query().Has("uploads") {
			listings.Add(1)
		}
		proxy.ServeHTTP(w, r)
	})).Open(t)
	run := collect(t, b.collectorOn(&deletes{Bucket: bucket}, instant, func(cfg *gc.Config) { cfg.Batch = 10 }))
	if run.Deleted != 61 || listings.Load() != 1 {
		t.Errorf("%d deleted with %d listings of uploads, want 61 with one", run.Deleted, listings.Load())
	}
	b.wantState(t, left, staging.Deleted)
	b.wantUploads(t)
}

func TestWhereUploadsCannotBeListedOnlyWhatCanHaveSomeIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := b.stage(t, b.grant(t, "july"), "data", "x")
	open := b.begun(t, b.grant(t, "august"), "data")
	b.db.Advance(t, retention+leaseTTL)
	denying := true
	proxy := b.storage.Proxy(t)
	bucket := b.storage.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if denying && r.Method == http.MethodGet && r.URL.Query().Has("uploads") {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>AccessDenied</Code></Error>")
			return
		}
		proxy.ServeHTTP(w, r)
	})).Open(t)
	c := b.collectorOn(&deletes{Bucket: bucket}, instant)
	if run := collect(t, c); run.Deleted != 1 || run.DeleteFailed != 1 {
		t.Errorf("%d deleted, %d failed, want 1 and 1", run.Deleted, run.DeleteFailed)
	}
	b.wantState(t, sealed, staging.Deleted)
	b.wantState(t, open, staging.Condemned)
	if o, err := b.objects.Object(t.Context(), open); err != nil || o.Failure == nil || !strings.Contains(o.Failure.Error, "AccessDenied") {
		t.Errorf("it says %+v (%v), want what the storage said", o.Failure, err)
	}
	b.wantUploads(t, open)
	denying = false
	b.db.Advance(t, 2*time.Minute)
	collect(t, c)
	b.wantState(t, open, staging.Deleted)
	b.wantUploads(t)
}

func TestWhatBecomesDueAfterTheUploadsWereListedWaitsForTheNextPass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	first, later := b.begun(t, g, "first"), b.begun(t, g, "later")
	for _, name := range []fencing.ObjectName{first, later} {
		_, err := b.objects.Discard(t.Context(), name)
		must(t, "discard", err)
	}
	b.db.Exec(t, "UPDATE object SET purge_after = purge_after + interval '1 hour' WHERE object_id = 'later'")
	b.db.Advance(t, urlLife+grace+time.Minute)
	moved := false
	d := &deletes{Bucket: b.bucket, before: func() error {
		if !moved {
			b.db.Advance(t, 2*time.Hour)
			moved = true
		}
		return nil
	}}
	if run := collect(t, b.collectorOn(d)); run.Deleted != 1 {
		t.Errorf("%d deleted, want the first", run.Deleted)
	}
	b.wantState(t, later, staging.Condemned)
	b.wantUploads(t, later)
	collect(t, b.collector())
	b.wantState(t, later, staging.Deleted)
	b.wantUploads(t)
}

func TestAThrottledAbortIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.begun(t, b.grant(t, "july"), "data")
	b.db.Advance(t, retention+leaseTTL)
	w := &waits{}
	d := &deletes{Bucket: b.bucket, abort: func() error {
		if w.sum() < 30*time.Second {
			return staging.ErrThrottled
		}
		return nil
	}}
	if run := collect(t, b.collectorOn(d, instant, w.so)); run.Deleted != 1 || run.DeleteFailed != 0 {
		t.Errorf("%d deleted, %d failed, want 1 and none", run.Deleted, run.DeleteFailed)
	}
	b.wantState(t, name, staging.Deleted)
	b.wantUploads(t)
}

func TestABucketIsEmptiedAlsoOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	through := *b.storage
	through.Config.Deletes = staging.DeleteSingle
	for i := range 5 {
		b.stage(t, b.grant(t, fencing.ReportID(fmt.Sprint("r", i))), "data", "x")
	}
	b.db.Advance(t, retention+leaseTTL)
	if run := collect(t, b.collectorOn(&deletes{Bucket: through.Open(t)}, atOnce)); run.Deleted != 5 {
		t.Errorf("%d deleted, want 5", run.Deleted)
	}
	if keys := b.keys(t); keys != "" {
		t.Errorf("keys left: %s", keys)
	}
}

func TestAVersionedBucketIsEmptiedThroughListsInPagesOfOne(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testbucket.NewVersioned(t), staging.Config{UploadURLLife: urlLife, Retention: retention, PurgeGrace: grace}, superseded)
	g := b.grant(t, "july")
	name, r, err := b.reserve(t.Context(), g, "data", "x")
	must(t, "reserve", err)
	must(t, "upload", upload(t.Context(), r.Upload, "x"))
	b.storage.Put(t, keyOf(name), "by a worker's own credentials")
	b.storage.Delete(t, keyOf(name))
	b.begun(t, g, "parts")
	b.begun(t, g, "parts.gz")
	b.db.Advance(t, retention+leaseTTL)
	bucket := b.storage.Behind(t, b.storage.InPagesOf(t, "1")).Open(t)
	if run := collect(t, b.collectorOn(&deletes{Bucket: bucket}, atOnce)); run.Deleted != 3 || run.DeleteFailed != 0 {
		t.Errorf("%d deleted, %d failed, want 3 and none", run.Deleted, run.DeleteFailed)
	}
	if left := b.storage.Versions(t); len(left) != 0 {
		t.Errorf("versions left: %v", left)
	}
	b.wantUploads(t)
}
