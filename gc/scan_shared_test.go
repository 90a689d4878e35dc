package gc_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

// deployment is a bundle of its own in a part of a bucket.
func deployment(t *testing.T, storage *testbucket.Bucket, prefix string) *bundle {
	t.Helper()
	part := *storage
	part.Config.Prefix = prefix
	b := setupOn(t, &part, staging.Config{Prefix: prefix, UploadURLLife: urlLife, Retention: retention, PurgeGrace: grace}, superseded)
	must(t, "claim", staging.Claim(t.Context(), b.db.Pool, b.bucket))
	return b
}

func TestDeploymentsThatShareABucketLeaveEachOthersKeysAlone(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	var all []*bundle
	for _, prefix := range []string{"", "a", "ab", "a/", "reports/x/", "reports/"} {
		all = append(all, deployment(t, storage, prefix))
	}
	for _, b := range all {
		// Reports whose names begin alike, with the same fences and object ids everywhere.
		b.next(t, "a", "first of a")
		b.next(t, "ab", "of ab")
		b.next(t, "x", "of x")
	}
	before := storage.Keys(t)
	for range 2 {
		for i, b := range all {
			run := scan(t, b.collector(scans, atOnce))
			if got := counts(t, run); got[1] != 0 || got[2] != 0 {
				t.Errorf("deployment %q: keys, unknown, returned, foreign: %v, want none unknown and none returned", b.storage.Config.Prefix, got)
			}
			if run.Deleted != 0 {
				t.Errorf("deployment %q deleted %d", b.storage.Config.Prefix, run.Deleted)
			}
			if i == 0 && run.ScanForeignObjects == 0 {
				t.Error("the deployment without a prefix has seen nothing of those under reports/")
			}
		}
		for _, b := range all {
			b.db.Advance(t, 10*unknown)
		}
	}
	if diff := cmp.Diff(before, storage.Keys(t)); diff != "" {
		t.Errorf("keys (-before +after):\n%s", diff)
	}

	// What one of them removes is its own.
	stray := "areports/a/7.7/stray"
	storage.Put(t, stray, "x")
	for _, b := range all {
		scan(t, b.collector(scans, atOnce))
		b.db.Advance(t, unknown+time.Hour)
		scan(t, b.collector(scans, atOnce))
	}
	if diff := cmp.Diff(before, storage.Keys(t)); diff != "" || slices.Contains(storage.Keys(t), stray) {
		t.Errorf("keys after a stray one has gone (-before +after):\n%s", diff)
	}
	for _, b := range all {
		b.wantIntact(t)
	}
}
