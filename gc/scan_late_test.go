package gc_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testproxy"
	"github.com/fenceline/fenceline/staging"
)

// gone fails the test unless nobody can make a deleted object visible.
func (b *bundle) gone(t *testing.T, name fencing.ObjectName) {
	t.Helper()
	_, sealErr := b.objects.Seal(t.Context(), name)
	for what, err := range map[string]error{"seal": sealErr, "publish": b.publish(t.Context(), name)} {
		if !errors.Is(err, fencing.ErrObjectGone) {
			t.Errorf("%s: %v, want that it is gone", what, err)
		}
	}
}

func TestAnUploadThatEndsAfterThePurgeIsGoneAfterTheNextScan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	name, r, err := b.reserve(t.Context(), g, "data", "late bytes")
	must(t, "reserve", err)

	proxy := testproxy.New(t, "tcp", b.storage.Address(t))
	proxy.Hold("late bytes")
	through := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(nil)}}
	late := r.Upload
	u, err := url.Parse(late.URL)
	must(t, "parse the upload URL", err)
	signedFor := u.Host
	u.Host = proxy.Addr
	uploading := async(func() error {
		request, err := http.NewRequestWithContext(t.Context(), late.Method, u.String(), strings.NewReader("late bytes"))
		if err != nil {
			return err
		}
		request.Host = signedFor
		for name, value := range late.Headers {
			request.Header.Set(name, value)
		}
		response, err := through.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		return errors.Join(err, response.Body.Close())
	})
	proxy.AwaitHeld(t)

	b.free(t, g)
	b.db.Advance(t, retention+leaseTTL)
	c := b.collector(scans, instant)
	if run := scan(t, c); run.Deleted != 1 || run.ScanReturned != 0 {
		t.Fatalf("the pass deleted %d, and %d had returned", run.Deleted, run.ScanReturned)
	}
	b.wantState(t, name, staging.Deleted)
	proxy.LetGo()
	must(t, "the late upload", await(t, "the late upload", uploading))
	if keys := b.keys(t); keys != keyOf(name) {
		t.Fatalf("stored is %q, want the late bytes", keys)
	}
	b.gone(t, name)

	if run := scan(t, c); run.ScanReturned != 1 || run.Deleted != 1 || run.DeletedBytes != int64(len("late bytes")) {
		t.Errorf("%d had returned, and %d of %d bytes were deleted, want 1 of 10 bytes", run.ScanReturned, run.Deleted, run.DeletedBytes)
	}
	if keys := b.keys(t); keys != "" {
		t.Errorf("left are %q", keys)
	}
	if run := scan(t, c); run.ScanReturned != 0 {
		t.Error("the next scan finds them once more")
	}
	want := []string{"condemned never_sealed july/data", "deleted never_sealed july/data", "deleted returned july/data"}
	if diff := cmp.Diff(want, b.ledger(t)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestAnUploadInPartsThatIsCompletedDuringThePurgeIsGoneAfterTheNextScan(t *testing.T) {
	t.Parallel()
	for point, at := range map[string]func(*deletes, func() error){
		"after its uploads were aborted": func(d *deletes, do func() error) { d.before = do },
		"after its bytes were deleted":   func(d *deletes, do func() error) { d.after = do },
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			name := b.begun(t, g, "data")
			b.free(t, g)
			b.db.Advance(t, retention+leaseTTL)
			d, done := &deletes{Bucket: b.bucket}, false
			at(d, func() error {
				if !done {
					done = true
					b.storage.PutMultipart(t, keyOf(name), "completed late")
				}
				return nil
			})
			c := b.collectorOn(d, scans, instant)
			collect(t, c)
			b.wantState(t, name, staging.Deleted)
			b.gone(t, name)
			b.db.Advance(t, time.Hour)
			scan(t, c)
			if keys := b.keys(t); keys != "" {
				t.Errorf("left are %q", keys)
			}
			b.wantUploads(t)
		})
	}
}

func TestUnfinishedUploadsGoWhereNobodyMayBeAtThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	inProgress := b.begun(t, g, "in-progress")
	sealed := b.stage(t, g, "sealed", "x")
	must(t, "publish", b.publish(t.Context(), sealed))
	b.storage.BeginUpload(t, keyOf(sealed))
	unknownKey := nameOf("july", "1.9", "unknown")
	b.storage.BeginUpload(t, keyOf(unknownKey))
	deleted := b.stage(t, b.grant(t, "august"), "data", "x")
	_, err := b.objects.Discard(t.Context(), deleted)
	must(t, "discard", err)
	b.renewFor(t, g, 3*retention)
	b.db.Advance(t, grace+urlLife)
	collect(t, b.collector(instant))
	b.wantState(t, deleted, staging.Deleted)
	b.storage.BeginUpload(t, keyOf(deleted))

	c := b.collector(scans, instant)
	if run := scan(t, c); run.ScanUnknown != 1 || run.ScanReturned != 1 {
		t.Errorf("%d found and %d had returned, want 1 each", run.ScanUnknown, run.ScanReturned)
	}
	b.wantUploads(t, inProgress, sealed, unknownKey)
	b.db.Advance(t, retention-2*urlLife)
	scan(t, c)
	b.wantUploads(t, inProgress, sealed, unknownKey)
	b.db.Advance(t, 3*urlLife)
	scan(t, c)
	b.wantUploads(t, inProgress, unknownKey)
	b.db.Advance(t, unknown)
	scan(t, c)
	b.wantUploads(t)
	b.wantState(t, unknownKey, staging.Deleted)
	b.wantIntact(t)
	const aborted = `SELECT count(*) FROM gc_ledger WHERE action = 'aborted' AND object_id = 'sealed'`
	if n := testdb.Value[int](t, b.db, aborted); n != 1 {
		t.Errorf("%d entries tell of the upload under what is sealed, want 1", n)
	}
}

func TestNothingOfAFrozenReportIsRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.collected(t)
	b.storage.Put(t, keyOf(name), "back")
	must(t, "freeze", b.catalog.Freeze(t.Context(), "july", "test"))
	c := b.collector(scans, instant)
	if run := scan(t, c); run.ScanReturned != 0 || b.keys(t) != keyOf(name) {
		t.Errorf("%d were removed of a frozen report", run.ScanReturned)
	}
	must(t, "unfreeze", b.catalog.Unfreeze(t.Context(), "july", "test"))
	if run := scan(t, c); run.ScanReturned != 1 || b.keys(t) != "" {
		t.Errorf("%d were removed once it was not frozen any more, want 1", run.ScanReturned)
	}
}

func TestAFreezeBeforeTheDeleteIsSentKeepsWhatHasReturned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.collected(t)
	b.storage.Put(t, keyOf(name), "back")
	d := &deletes{Bucket: b.bucket, before: func() error { return b.catalog.Freeze(t.Context(), "july", "test") }}
	if run := scan(t, b.collectorOn(d, scans, instant)); run.ScanReturned != 0 || b.keys(t) != keyOf(name) {
		t.Errorf("%d were removed of a frozen report", run.ScanReturned)
	}
}

func TestWhatHasReturnedAndCannotBeDeletedIsTriedAgainByTheNextScan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.collected(t)
	b.storage.Put(t, keyOf(name), "back")
	refuse := errors.New("access denied")
	d := &deletes{Bucket: b.bucket, answer: func(staging.ObjectRef) error { return refuse }}
	c := b.collectorOn(d, scans, instant)
	if run := scan(t, c); run.ScanReturned != 0 || run.DeleteFailed != 1 {
		t.Errorf("%d removed and %d failed, want none and 1", run.ScanReturned, run.DeleteFailed)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(leftover_at) FROM object"); n != 1 {
		t.Error("what could not be deleted is not noted any more")
	}
	refuse = nil
	if run := scan(t, c); run.ScanReturned != 1 || b.keys(t) != "" {
		t.Errorf("%d removed, want 1", run.ScanReturned)
	}
}

func TestAScanThatHasLostItsPassRemovesNothing(t *testing.T) {
	t.Parallel()
	for what, undo := range map[string]struct {
		statement string
		want      error
	}{
		"written off": {"UPDATE gc_run SET finished_at = fenceline_now(), outcome = 'abandoned' WHERE finished_at IS NULL", gc.ErrRunEnded},
		"paused":      {"INSERT INTO gc_pause (paused_at, paused_by) VALUES (now(), 'test')", gc.ErrPaused},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			name := b.collected(t)
			b.storage.Put(t, keyOf(name), "back")
			d := &deletes{Bucket: b.bucket, before: func() error { b.db.Exec(t, undo.statement); return nil }}
			d.sent = func(refs []staging.ObjectRef) { t.Errorf("a delete was sent: %v", refs) }
			_, err := runScan(t.Context(), t, b.collectorOn(d, scans, instant), gc.Options{})
			if !errors.Is(err, undo.want) {
				t.Errorf("ended in %v, want %v", err, undo.want)
			}
		})
	}
}

func TestWhatHasReturnedKeepsItsTombstoneUntilLongAfterItIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.collected(t)
	b.storage.Put(t, keyOf(name), "back")
	refuse := errors.New("access denied")
	d := &deletes{Bucket: b.bucket, answer: func(staging.ObjectRef) error { return refuse }}
	c := b.collectorOn(d, scans, instant, func(cfg *gc.Config) { cfg.Tombstones = tombstones })
	rows := func() int {
		return testdb.Value[int](t, b.db, "SELECT count(*) FROM object WHERE object_id = $1", name.Object)
	}
	scan(t, c)
	b.db.Advance(t, tombstones+time.Hour)
	scan(t, c)
	if rows() != 1 {
		t.Fatal("it was forgotten while something is under its key: a worker may reserve it anew, and lose its bytes to a delete of now")
	}
	if s := standing(t, c); s.Overdue.Objects != 1 {
		t.Errorf("it is not overdue: %+v", s)
	}
	refuse = nil
	scan(t, c)
	b.db.Advance(t, tombstones-time.Minute) // a delete that was signed before may still be on its way for a part of that
	collect(t, c)
	if rows() != 1 {
		t.Error("its tombstone has not begun anew")
	}
	b.db.Advance(t, time.Hour)
	collect(t, c)
	if rows() != 0 {
		t.Error("its tombstone is kept for ever")
	}
}
