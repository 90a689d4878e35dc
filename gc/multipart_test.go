package gc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// AbortUpload is the bucket's, unless abort keeps uploads from being aborted.
func (d *deletes) AbortUpload(ctx context.Context, key, uploadID string, beforeSend func(context.Context) error) error {
	if d.abort != nil {
		if err := d.abort(); err != nil {
			return err
		}
	}
	return d.Bucket.AbortUpload(ctx, key, uploadID, beforeSend)
}

// AbortUploads is the bucket's, unless abort keeps the uploads from being aborted.
func (d *deletes) AbortUploads(ctx context.Context, key string, beforeSend func(context.Context) error) error {
	if d.abort != nil {
		if err := d.abort(); err != nil {
			return err
		}
	}
	return d.Bucket.AbortUploads(ctx, key, beforeSend)
}

// begun reserves an object in two parts, and uploads the second.
func (b *bundle) begun(t *testing.T, g lease.Grant, id fencing.ObjectID) fencing.ObjectName {
	t.Helper()
	name := fencing.ObjectName{Report: g.Report, Fence: g.Fence, Object: id}
	r, err := b.objects.Reserve(t.Context(), name, staging.Declaration{
		Size: new(staging.MinPartSize + 5), PartSize: staging.MinPartSize,
	})
	must(t, "reserve", err)
	must(t, "upload a part", upload(t.Context(), r.Parts[1].Upload, "hello"))
	return name
}

// wantUploads fails the test unless exactly these keys have one unfinished upload each.
func (b *bundle) wantUploads(t *testing.T, names ...fencing.ObjectName) {
	t.Helper()
	var got, want []string
	for _, u := range b.storage.Uploads(t) {
		key, _, _ := strings.Cut(u, " ")
		got = append(got, key)
	}
	for _, name := range names {
		want = append(want, keyOf(name))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("unfinished uploads of %q, want of %q", got, want)
	}
}

func TestAnUnfinishedUploadIsAbortedOnceItsObjectIsDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	left := b.begun(t, b.grant(t, "july"), "data")
	b.storage.BeginUpload(t, keyOf(left)) // by a process that ended before it wrote that down
	other := b.begun(t, b.grant(t, "august"), "data")
	c := b.collector()

	b.db.Advance(t, retention-time.Hour)
	collect(t, c)
	b.wantUploads(t, left, left, other)

	b.free(t, b.grant(t, "september")) // time alone matters
	longer, err := b.objects.Reserve(t.Context(), other, staging.Declaration{Size: new(staging.MinPartSize + 5), PartSize: staging.MinPartSize})
	must(t, "reserve again", err) // which prolongs it
	if !longer.Repeated {
		t.Error("the repeated reservation says that it is the first")
	}
	b.db.Advance(t, 2*time.Hour)
	if run := collect(t, c); run.Condemned != 1 || run.Deleted != 0 {
		t.Errorf("%d condemned, %d deleted, want 1 and none before its grace has ended", run.Condemned, run.Deleted)
	}
	b.wantState(t, left, staging.Condemned)
	b.wantUploads(t, left, left, other)

	b.db.Advance(t, grace)
	if run := collect(t, c); run.Deleted != 1 || run.DeleteFailed != 0 {
		t.Errorf("%d deleted, %d failed, want 1 and none", run.Deleted, run.DeleteFailed)
	}
	b.wantState(t, left, staging.Deleted)
	b.wantUploads(t, other)
}

func TestAnUploadByAWorkersOwnCredentialsIsAbortedWithItsObject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name, _, err := b.reserve(t.Context(), b.grant(t, "july"), "data", "never uploaded")
	must(t, "reserve", err)
	b.storage.BeginUpload(t, keyOf(name))
	b.db.Advance(t, retention-time.Hour)
	collect(t, b.collector(instant))
	b.wantUploads(t, name)
	b.db.Advance(t, time.Hour+leaseTTL)
	collect(t, b.collector(instant))
	b.wantState(t, name, staging.Deleted)
	b.wantUploads(t)
}

func TestAnUploadInProgressIsSparedWhileItsLeaseLives(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	name := b.begun(t, g, "data")
	longer := b.begun(t, g, "data.gz") // whose key begins with the other's
	b.renewFor(t, g, 2*retention)
	b.db.Advance(t, retention+time.Hour)
	if run := collect(t, b.collector(instant)); run.PutOff != 2 || run.Condemned != 0 {
		t.Errorf("%d put off, %d condemned, want 2 and none", run.PutOff, run.Condemned)
	}
	b.wantUploads(t, name, longer)

	_, err := b.objects.Discard(t.Context(), name)
	must(t, "discard", err)
	b.db.Advance(t, grace)
	collect(t, b.collector(instant))
	b.wantState(t, name, staging.Deleted)
	b.wantUploads(t, longer)
}

func TestAnUploadThatCannotBeAbortedIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.begun(t, b.grant(t, "july"), "data")
	b.db.Advance(t, retention+leaseTTL)
	refusing := true
	d := &deletes{Bucket: b.bucket, abort: func() error {
		if refusing {
			return errors.New("access denied")
		}
		return nil
	}}
	c := b.collectorOn(d, instant)
	if run := collect(t, c); run.Deleted != 0 || run.DeleteFailed != 1 {
		t.Errorf("%d deleted, %d failed, want none and 1", run.Deleted, run.DeleteFailed)
	}
	b.wantState(t, name, staging.Condemned)
	refusing = false
	b.db.Advance(t, 2*time.Minute)
	collect(t, c)
	b.wantState(t, name, staging.Deleted)
	b.wantUploads(t)
}

func TestACollectorThatHasLostItsPassAbortsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.begun(t, b.grant(t, "july"), "data")
	b.db.Advance(t, retention+leaseTTL)
	collect(t, b.collector())
	b.db.Advance(t, grace+urlLife)
	d := &deletes{Bucket: b.bucket, abort: func() error {
		b.db.Exec(t, "UPDATE gc_run SET finished_at = fenceline_now(), outcome = 'abandoned' WHERE finished_at IS NULL")
		return nil
	}}
	if err := pass(t.Context(), b.collectorOn(d)); !errors.Is(err, gc.ErrRunEnded) {
		t.Errorf("the pass ended in %v, want that it was written off", err)
	}
	b.wantState(t, name, staging.Condemned)
	b.wantUploads(t, name)
}

func TestACollectorThatAbortsNoUploadsMarksNoObjectInPartsAsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.begun(t, b.grant(t, "july"), "data")
	b.db.Advance(t, retention+leaseTTL)
	collect(t, b.collector())
	p, err := b.collector().Begin(t.Context(), gc.Options{By: "an older program"})
	must(t, "begin", err)
	status := testdb.Value[string](t, b.db, `
		SELECT status FROM record_purge($1, (SELECT jsonb_agg(jsonb_build_object(
			'report_id', report_id, 'fence_epoch', fence_epoch, 'fence_counter', fence_counter, 'object_id', object_id, 'error', NULL)) FROM object))`,
		p.ID)
	if status != "recorded" {
		t.Errorf("status %s", status)
	}
	b.wantState(t, name, staging.Condemned)
}
