package gc_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/staging"
)

// ages are how many objects should have gone longer ago than an hour, six hours, a day and a week.
func ages(o gc.Overdue) string {
	text := fmt.Sprint(o.Objects)
	for _, a := range o.ByAge {
		text += fmt.Sprintf(" %v:%d", a.OlderThan, a.Objects)
	}
	return text
}

func TestWhatShouldHaveGoneIsCountedByItsAge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.next(t, "visible", "stays")
	stranded := b.strand(t, "july", 3) // due a day later
	_, err := b.objects.Discard(t.Context(), stranded[0])
	must(t, "discard", err) // to be deleted ten hours after its upload URL has ended, eleven from now
	b.db.Advance(t, time.Minute)
	c := b.collector(tight)
	want := func(when, counts string, oldest time.Duration) {
		t.Helper()
		o := standing(t, c).Overdue
		if got := ages(o); got != counts {
			t.Errorf("%s overdue are %q, want %q", when, got, counts)
		}
		if o.Oldest < oldest-time.Minute || o.Oldest > oldest+10*time.Minute {
			t.Errorf("%s the oldest is overdue for %v, want %v", when, o.Oldest, oldest)
		}
	}
	want("at once", "0 1h0m0s:0 6h0m0s:0 24h0m0s:0 168h0m0s:0", 0)
	b.db.Advance(t, grace+urlLife)
	want("after its grace", "1 1h0m0s:0 6h0m0s:0 24h0m0s:0 168h0m0s:0", 0)
	b.db.Advance(t, 2*time.Hour)
	want("two hours later", "1 1h0m0s:1 6h0m0s:0 24h0m0s:0 168h0m0s:0", 2*time.Hour)
	b.db.Advance(t, retention-grace-urlLife)
	want("once the others are due for two hours", "3 1h0m0s:3 6h0m0s:1 24h0m0s:0 168h0m0s:0", 15*time.Hour)
	collect(t, c) // deletes the discarded one, condemns one, and holds one back
	want("after a pass", "1 1h0m0s:1 6h0m0s:0 24h0m0s:0 168h0m0s:0", 2*time.Hour)
	b.db.Advance(t, 8*24*time.Hour)
	want("eight days later", "2 1h0m0s:2 6h0m0s:2 24h0m0s:2 168h0m0s:2", 8*24*time.Hour+2*time.Hour)

	must(t, "freeze", b.catalog.Freeze(t.Context(), "july", "an operator"))
	want("while its report is frozen", "0 1h0m0s:0 6h0m0s:0 24h0m0s:0 168h0m0s:0", 0)
}

func TestWhatTenAttemptsCouldNotDeleteIsStuck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	refused := errors.New("access denied")
	c := b.collectorOn(&deletes{Bucket: b.bucket, answer: func(staging.ObjectRef) error { return refused }}, instant)
	for attempt := range 10 {
		if s := standing(t, c); s.Stuck != 0 {
			t.Errorf("after %d attempts it is stuck", attempt)
		}
		b.db.Advance(t, 7*time.Hour)
		if run := collect(t, c); run.DeleteFailed != 1 {
			t.Fatalf("attempt %d: %+v", attempt, run)
		}
	}
	if s := standing(t, c); s.Stuck != 1 {
		t.Errorf("after ten attempts %d are stuck, want 1", s.Stuck)
	}
	refused = nil
	b.db.Advance(t, 7*time.Hour)
	collect(t, c)
	if s := standing(t, c); s.Stuck != 0 {
		t.Error("what is deleted is still stuck")
	}
	b.wantState(t, x.name, staging.Deleted)
}

func TestTheRecordSaysWhatWasDoneAndWhyAndWhatTheStorageSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 4)
	b.next(t, "august", "first!")
	b.next(t, "august", "second")
	b.db.Advance(t, superseded+leaseTTL)
	live := b.grant(t, "live")
	b.stage(t, live, "working", "xyz")
	b.renewFor(t, live, 2*retention)
	b.db.Advance(t, retention+leaseTTL)
	d := &deletes{Bucket: b.bucket, answer: func(ref staging.ObjectRef) error {
		return map[string]error{"reports/july/1.1/0": errors.New("denied"), "reports/july/1.1/1": errors.New("denied"), "reports/july/1.1/2": errors.New("locked")}[ref.Key]
	}}
	c := b.collectorOn(d, func(cfg *gc.Config) {
		cfg.PurgeGrace, cfg.BrakeMin, cfg.BrakeShare, cfg.Batch = instantly, 3, 0.0001, 2
	})
	run := collect(t, c)
	var decided []gc.Tally
	for _, tally := range run.ByReason {
		if tally.Action != "deleted" && tally.Action != "delete_failed" {
			decided = append(decided, tally)
		}
	}
	if diff := cmp.Diff([]gc.Tally{
		{Action: "braked", Reason: "never_published", Objects: 1, Bytes: 1},
		{Action: "condemned", Reason: "never_published", Objects: 3, Bytes: 3},
		{Action: "condemned", Reason: "superseded", Objects: 1, Bytes: 6},
		{Action: "put_off", Reason: "live_lease", Objects: 1, Bytes: 3},
	}, decided); diff != "" {
		t.Errorf("by reason (-want +got):\n%s", diff)
	}
	for i := range run.Errors {
		run.Errors[i].LastAt = time.Time{}
	}
	if diff := cmp.Diff([]gc.Failure{{Detail: "denied", Objects: 2}, {Detail: "locked", Objects: 1}}, run.Errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if p := run.Progress(); p != nil {
		t.Errorf("a pass that has ended is at %+v", p)
	}
	if listed, err := c.Records(t.Context(), 0, 10); err != nil || len(listed) != 1 || len(listed[0].ByReason) != len(run.ByReason) {
		t.Errorf("in the list it is %+v, %v", listed, err)
	}
}

func TestAPassTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "august", 2)
	b.strand(t, "july", 3)
	b.db.Advance(t, retention+leaseTTL)
	letGo := b.db.HoldReport(t, "july") // the second batch waits here
	s := newStop(t)
	c := b.collectorOn(&deletes{Bucket: b.bucket, before: s.wait}, instant, func(cfg *gc.Config) { cfg.Batch = 2 })
	p, err := c.Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	running := async(func() error { return p.Run(t.Context()) })
	b.db.AwaitWaiting(t, 1)
	got := record(t, c, p.ID).Progress()
	if got == nil || got.Phase != "condemn" || got.Done != 2 || got.Total == nil || *got.Total != 5 ||
		got.PerSecond == nil || *got.PerSecond <= 0 || got.Remaining == nil || *got.Remaining <= 0 {
		t.Errorf("after one batch of the mark it is at %+v, want 2 of 5, a rate and what remains", got)
	}
	letGo()
	s.arrived(t)
	got = record(t, c, p.ID).Progress()
	if got == nil || got.Phase != "purge" || got.Done != 0 || got.Total == nil || *got.Total != 5 || got.PerSecond != nil || got.Remaining != nil {
		t.Errorf("before the first delete it is at %+v, want 0 of 5", got)
	}
	s.letGo()
	must(t, "run", await(t, "the pass", running))
	if got := record(t, c, p.ID).Progress(); got != nil {
		t.Errorf("once it has ended it is at %+v", got)
	}
}
