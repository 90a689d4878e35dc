package gc_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

// versionKeys are the keys of all versions and delete markers, in order.
func versionKeys(t *testing.T, storage *testbucket.Bucket) (keys []string) {
	t.Helper()
	for _, v := range storage.Versions(t) {
		if key, _, _ := strings.Cut(v, " "); key != "owner" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestAScanOfAVersionedBucketSeesVersionsAndMarkers(t *testing.T) {
	t.Parallel()
	storage := testbucket.NewVersioned(t)
	b := setupOn(t, storage, staging.Config{UploadURLLife: urlLife, Retention: retention, PurgeGrace: grace}, superseded)
	overwritten := b.next(t, "july", "visible, and overwritten")
	hidden := b.next(t, "august", "visible, behind a marker")
	gone := b.stage(t, b.grant(t, "may"), "data", "x")
	_, err := b.objects.Discard(t.Context(), gone)
	must(t, "discard", err)
	b.db.Advance(t, grace+urlLife)
	c := b.collector(scans, instant)
	collect(t, c)
	b.wantState(t, gone, staging.Deleted)

	found := nameOf("june", "1.1", "unknown")
	marked := nameOf("june", "1.1", "marked")
	storage.Put(t, keyOf(overwritten), "by somebody")
	storage.Delete(t, keyOf(hidden))
	storage.Put(t, keyOf(gone), "back")
	storage.Put(t, keyOf(gone), "back again")
	storage.Delete(t, keyOf(gone))
	storage.Put(t, keyOf(found), "one")
	storage.Put(t, keyOf(found), "four")
	storage.Put(t, keyOf(marked), "one")
	storage.Delete(t, keyOf(marked))

	run := scan(t, c)
	if diff := cmp.Diff([4]int64{5, 2, 1, 2}, counts(t, run)); diff != "" {
		t.Errorf("keys, unknown, returned, foreign (-want +got):\n%s", diff)
	}
	if run.Deleted != 1 || run.DeletedBytes != 14 || run.ScanForeignBytes != 11 {
		t.Errorf("%d of %d bytes deleted, %d bytes foreign; want 1, 14, 11", run.Deleted, run.DeletedBytes, run.ScanForeignBytes)
	}
	kept := []string{keyOf(hidden), keyOf(hidden), keyOf(overwritten), keyOf(overwritten)}
	if diff := cmp.Diff(append(slices.Clone(kept), keyOf(marked), keyOf(marked), keyOf(found), keyOf(found)), versionKeys(t, storage)); diff != "" {
		t.Errorf("versions and markers (-want +got):\n%s", diff)
	}
	b.wantIntact(t)

	b.db.Advance(t, unknown+time.Hour)
	scan(t, c)
	if diff := cmp.Diff(kept, versionKeys(t, storage)); diff != "" {
		t.Errorf("versions and markers after the retention (-want +got):\n%s", diff)
	}
	b.wantState(t, found, staging.Deleted)
	b.wantState(t, marked, staging.Deleted)
	b.wantIntact(t)
}

func TestVersionsBeyondOnePageAreSeenOnce(t *testing.T) {
	t.Parallel()
	storage := testbucket.NewVersioned(t)
	b := setupOn(t, storage, staging.Config{UploadURLLife: urlLife, Retention: retention, PurgeGrace: grace}, superseded)
	visible := b.next(t, "july", "visible")
	for range 7 {
		storage.Put(t, keyOf(visible), "over it")
	}
	b.fill(t, 5)
	for _, size := range []string{"2", "3", "5"} {
		d := &deletes{Bucket: storage.Behind(t, storage.Resigning(t, testbucket.PagesOf(size))).Open(t)}
		if run := scan(t, b.collectorOn(d, scans)); run.ScanForeignObjects != 7 || b.found(t) != 5 || *run.ScanKeys != 6 {
			t.Errorf("pages of %s: %d keys, %d foreign and %d found, want 6, 7 and 5", size, *run.ScanKeys, run.ScanForeignObjects, b.found(t))
		}
	}
}
