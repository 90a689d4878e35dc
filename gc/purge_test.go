package gc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

func TestAnObjectThatIsGoneAlreadyIsClosed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	b.storage.Delete(t, keyOf(x.name))
	run := collect(t, b.collector(instant))
	if run.Deleted != 1 || run.DeleteFailed != 0 {
		t.Errorf("%d deleted and %d failed, want 1 and 0", run.Deleted, run.DeleteFailed)
	}
	b.wantState(t, x.name, staging.Deleted)
}

func TestKeysThatCannotBeDeletedAreTriedAgainAndTheRestIsDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	const objects = 30
	for i := range objects {
		_, r, err := b.reserve(t.Context(), g, fencing.ObjectID(fmt.Sprint(i)), "x")
		must(t, "reserve", err)
		must(t, "upload", upload(t.Context(), r.Upload, "x"))
	}
	b.db.Advance(t, retention+leaseTTL)
	refusing := true
	d := &deletes{Bucket: b.bucket, answer: func(ref staging.ObjectRef) error {
		if refusing && (strings.HasSuffix(ref.Key, "/0") || strings.HasSuffix(ref.Key, "/17") || strings.HasSuffix(ref.Key, "/29")) {
			return errors.New("access denied")
		}
		return nil
	}}
	c := b.collectorOn(d, instant)
	run := collect(t, c)
	if run.Deleted != objects-3 || run.DeleteFailed != 3 || *run.Outcome != "completed" {
		t.Errorf("%d deleted, %d failed, %s; want %d, 3, completed", run.Deleted, run.DeleteFailed, *run.Outcome, objects-3)
	}
	entries, err := c.Entries(t.Context(), run.RunID, catalog.Names{}, "", 0, 1000)
	must(t, "read the ledger", err)
	failed := slices.DeleteFunc(entries, func(e gc.Entry) bool { return e.Action != "delete_failed" })
	if len(failed) != 3 || failed[0].Detail != "access denied" || failed[0].Reason != "never_sealed" {
		t.Errorf("the ledger tells %+v, want three that failed and why", failed)
	}

	// Each pause is twice the one before, up to six hours.
	for _, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		b.db.Advance(t, pause-time.Minute/2)
		if run := collect(t, c); run.DeleteFailed != 0 {
			t.Errorf("%d were tried again before a pause of %v was over", run.DeleteFailed, pause)
		}
		b.db.Advance(t, time.Minute/2)
		if run := collect(t, c); run.DeleteFailed != 3 {
			t.Errorf("%d were tried again after a pause of %v, want 3", run.DeleteFailed, pause)
		}
	}
	for range 8 {
		b.db.Advance(t, 6*time.Hour)
		if run := collect(t, c); run.DeleteFailed != 3 {
			t.Errorf("%d were tried again after six hours, want 3", run.DeleteFailed)
		}
	}
	refusing = false
	b.db.Advance(t, 6*time.Hour)
	if run := collect(t, c); run.Deleted != 3 {
		t.Errorf("%d were deleted at last, want 3", run.Deleted)
	}
	if keys := b.keys(t); keys != "" {
		t.Errorf("keys left: %s", keys)
	}
}

func TestBytesGoOnlyAfterTheGraceAndTheLastUploadURL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.collector()
	g := b.grant(t, "july")
	name, first, err := b.reserve(t.Context(), g, "data", "x")
	must(t, "reserve", err)
	b.db.Advance(t, 30*time.Second)
	_, _, err = b.reserve(t.Context(), g, "data", "x") // with it the URL's end moves on
	must(t, "reserve again", err)
	_, err = b.objects.Discard(t.Context(), name)
	must(t, "discard", err)
	must(t, "upload after the discard", upload(t.Context(), first.Upload, "x"))

	b.db.Advance(t, urlLife+grace-time.Second)
	if run := collect(t, c); run.Deleted != 0 {
		t.Error("it was deleted before the grace was over")
	}
	b.db.Advance(t, 2*time.Second)
	if run := collect(t, c); run.Deleted != 1 {
		t.Error("it was not deleted after the grace")
	}
	if keys := b.keys(t); keys != "" {
		t.Errorf("what was uploaded late is left: %s", keys)
	}
}

func TestOnAVersionedBucketNoVersionIsLeft(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testbucket.NewVersioned(t), staging.Config{UploadURLLife: urlLife, Retention: retention, PurgeGrace: grace}, superseded)
	g := b.grant(t, "july")
	b.stage(t, g, "sealed", "x")
	_, r, err := b.reserve(t.Context(), g, "uploaded", "x")
	must(t, "reserve", err)
	must(t, "upload", upload(t.Context(), r.Upload, "x"))
	_, _, err = b.reserve(t.Context(), g, "reserved", "x")
	must(t, "reserve", err)
	b.db.Advance(t, retention+leaseTTL)
	if run := collect(t, b.collector(atOnce)); run.Deleted != 3 {
		t.Errorf("%d objects were deleted, want 3", run.Deleted)
	}
	if left := b.storage.Versions(t); len(left) != 0 {
		t.Errorf("versions left: %v", left)
	}
}

func TestTheReportOfAPassTellsItsObjectsInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	for i := range 5 {
		b.stage(t, g, fencing.ObjectID(fmt.Sprint(i)), strings.Repeat("x", i))
	}
	b.db.Advance(t, retention+leaseTTL)
	var told []gc.Entry
	c := b.collector(func(cfg *gc.Config) { cfg.PurgeGrace, cfg.Batch = instantly, 2 })
	p, err := c.Begin(t.Context(), gc.Options{By: "an operator", Each: func(e gc.Entry) { told = append(told, e) }})
	must(t, "begin", err)
	must(t, "run", p.Run(t.Context()))

	run := record(t, c, p.ID)
	if run.StartedBy != "an operator" || run.Phase != "done" || run.Condemned != 5 || run.CondemnedBytes != 10 || run.Deleted != 5 || run.DeletedBytes != 10 {
		t.Errorf("its record says %+v, want 5 objects of 10 bytes", run)
	}
	var listed []gc.Entry
	for after := int64(0); ; {
		page, err := c.Entries(t.Context(), p.ID, catalog.Names{}, "", after, 3)
		must(t, "read the ledger", err)
		if len(page) == 0 {
			break
		}
		listed, after = append(listed, page...), page[len(page)-1].Entry
	}
	line := func(e gc.Entry) string {
		return fmt.Sprint(e.Action, " ", e.Reason, " ", e.Object, " ", e.Key, " ", *e.Size)
	}
	lines := func(entries []gc.Entry) (all []string) {
		for _, e := range entries {
			all = append(all, line(e))
		}
		return all
	}
	// Within a batch of deletes the database locks by key, and what is told is in the order of time.
	got, want := lines(listed), lines(told)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 10 {
		t.Errorf("what was told, and what is in the ledger (-want +got):\n%s", diff)
	}
	_, err = c.Entries(t.Context(), p.ID+1, catalog.Names{}, "", 0, 10)
	if !errors.Is(err, gc.ErrRunNotFound) {
		t.Errorf("the objects of an unknown run: %v", err)
	}
	runs, err := c.Records(t.Context(), 0, 10)
	must(t, "list passes", err)
	if len(runs) != 1 || runs[0].RunID != p.ID {
		t.Errorf("the list of passes is %+v", runs)
	}
}

func TestTheLedgerIsReadWithoutTheCountsOfItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 3)
	b.db.Advance(t, retention+leaseTTL)
	run := collect(t, b.collector(instant))
	b.db.Exec(t, "REVOKE SELECT ON gc_tally FROM fenceline_service")
	entries, err := b.collector().Entries(t.Context(), run.RunID, catalog.Names{}, "deleted", 0, 2)
	if err != nil || len(entries) != 2 {
		t.Errorf("a page has %d entries, error %v; want 2", len(entries), err)
	}
}
