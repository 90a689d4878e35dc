package gc_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// target is an object that is due, and an attempt to make it visible nevertheless.
type target struct {
	name    fencing.ObjectName
	publish func(context.Context) error
}

// targets are the ways in which a due object becomes visible.
var targets = map[string]func(*testing.T, *bundle) target{
	"a publish": func(t *testing.T, b *bundle) target {
		g := b.grant(t, "july")
		name := b.stage(t, g, "data", "never published")
		b.db.Advance(t, retention+leaseTTL)
		return target{name, func(ctx context.Context) error { return b.publish(ctx, name) }}
	},
	"a publish that seals": func(t *testing.T, b *bundle) target {
		name, r, err := b.reserve(t.Context(), b.grant(t, "july"), "data", "never sealed")
		must(t, "reserve", err)
		must(t, "upload", upload(t.Context(), r.Upload, "never sealed"))
		b.db.Advance(t, retention+leaseTTL)
		return target{name, func(ctx context.Context) error { return b.publish(ctx, name) }}
	},
	"a roll-back": func(t *testing.T, b *bundle) target {
		name, g := supersede(t, b)
		return target{name, func(ctx context.Context) error {
			_, err := b.rollBack(ctx, g, 1)
			return err
		}}
	},
	"a roll-back, and the visible object again": func(t *testing.T, b *bundle) target {
		name, g := supersede(t, b)
		return target{name, func(ctx context.Context) error {
			receipt, err := b.rollBack(ctx, g, 1)
			if err == nil {
				_, err = b.rollBack(ctx, g, receipt.Version)
			}
			return err
		}}
	},
}

// supersede makes two versions of a report, of which the first one's object is due, and a grant.
func supersede(t *testing.T, b *bundle) (fencing.ObjectName, lease.Grant) {
	first := b.next(t, "july", "first")
	b.next(t, "july", "second")
	b.db.Advance(t, superseded+leaseTTL)
	return first, b.grant(t, "july")
}

// steps are the places in the work of a pass at which it can be stopped. What is held must be held before the
// pass begins; arrived returns when the pass has come there, and letGo sends it on.
var steps = []struct {
	name  string
	waits bool // a publish cannot be decided before the pass has gone on
	stop  func(*testing.T, *bundle, *deletes, fencing.ObjectName) (arrived, letGo func())
}{
	{"candidates picked, their reports not locked yet", true, func(t *testing.T, b *bundle, _ *deletes, name fencing.ObjectName) (arrived, letGo func()) {
		letGo = b.db.HoldReport(t, string(name.Report))
		return func() { b.db.AwaitWaiting(t, 1) }, letGo
	}},
	{"condemned, not committed", true, func(t *testing.T, b *bundle, _ *deletes, _ fencing.ObjectName) (arrived, letGo func()) {
		letGo = b.db.Hold(t, "LOCK TABLE gc_ledger IN SHARE MODE")
		return func() { b.db.AwaitWaiting(t, 1) }, letGo
	}},
	{"condemned, the delete not sent", false, func(t *testing.T, _ *bundle, d *deletes, _ fencing.ObjectName) (arrived, letGo func()) {
		s := newStop(t)
		d.before = s.wait
		return func() { s.arrived(t) }, s.letGo
	}},
	{"deleted, not recorded", false, func(t *testing.T, _ *bundle, d *deletes, _ fencing.ObjectName) (arrived, letGo func()) {
		s := newStop(t)
		d.after = s.wait
		return func() { s.arrived(t) }, s.letGo
	}},
	{"about to be recorded", true, func(t *testing.T, b *bundle, d *deletes, name fencing.ObjectName) (arrived, letGo func()) {
		return afterwards(t, b, d, func() func() { return b.holdObject(t, name) })
	}},
	{"recorded, not committed", true, func(t *testing.T, b *bundle, d *deletes, _ fencing.ObjectName) (arrived, letGo func()) {
		return afterwards(t, b, d, func() func() { return b.db.Hold(t, "LOCK TABLE gc_ledger IN SHARE MODE") })
	}},
	{"forgotten, not committed", true, func(t *testing.T, b *bundle, d *deletes, _ fencing.ObjectName) (arrived, letGo func()) {
		return afterwards(t, b, d, func() func() { return b.db.Hold(t, "LOCK TABLE lease IN SHARE MODE") })
	}},
}

// afterwards stops a pass at a lock that is taken once its delete was answered.
func afterwards(t *testing.T, b *bundle, d *deletes, hold func() func()) (arrived, letGo func()) {
	s := newStop(t)
	d.after = s.wait
	var lift func()
	arrived = func() {
		s.arrived(t)
		lift = hold()
		s.letGo()
		b.db.AwaitWaiting(t, 1)
	}
	return arrived, func() { lift() }
}

func (b *bundle) holdObject(t *testing.T, name fencing.ObjectName) (letGo func()) {
	return b.db.Hold(t, `
		SELECT FROM object
		WHERE (report_id, fence_epoch, fence_counter, object_id) = ($1, $2, $3, $4) FOR UPDATE`,
		name.Report, name.Fence.Epoch, name.Fence.Counter, name.Object)
}

func TestWhatAPassHasCondemnedIsRefusedAtEveryStep(t *testing.T) {
	t.Parallel()
	for kind, prepare := range targets {
		for _, step := range steps {
			t.Run(kind+" when "+step.name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				x := prepare(t, b)
				d := &deletes{Bucket: b.bucket}
				arrived, letGo := step.stop(t, b, d, x.name)
				collecting := async(func() error { return pass(t.Context(), b.collectorOn(d, atOnce)) })
				arrived()

				publishing := async(func() error { return x.publish(t.Context()) })
				if step.waits {
					b.db.AwaitWaiting(t, 2)
				} else {
					wantGone(t, await(t, "the publish", publishing))
				}
				letGo()
				must(t, "run a pass", await(t, "the pass", collecting))
				if step.waits {
					wantGone(t, await(t, "the publish", publishing))
				}

				wantGone(t, x.publish(t.Context()))
				b.wantIntact(t)
				b.wantState(t, x.name, "")
				if slices.Contains(b.storage.Keys(t), keyOf(x.name)) {
					t.Error("its bytes are still there")
				}
			})
		}
	}
}

// wantGone fails the test unless a publish was refused since its object is gone, or forgotten already.
func wantGone(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, fencing.ErrObjectGone) && !errors.Is(err, fencing.ErrObjectNotFound) {
		t.Errorf("the publish ended in %v, want that the object is gone", err)
	}
}

func keyOf(name fencing.ObjectName) string {
	return "reports/" + string(name.Report) + "/" + name.Fence.String() + "/" + string(name.Object)
}

// heads are the places where a publish is when a pass comes upon its object: before it, in each case.
var heads = map[string]func(*testing.T, *bundle, fencing.ObjectName) (letGo func()){
	"in line for the report": func(t *testing.T, b *bundle, name fencing.ObjectName) func() {
		return b.db.HoldReport(t, string(name.Report))
	},
	"in line for the object": func(t *testing.T, b *bundle, name fencing.ObjectName) func() {
		return b.holdObject(t, name)
	},
	"writing the publication": func(t *testing.T, b *bundle, _ fencing.ObjectName) func() {
		return b.db.Hold(t, "LOCK TABLE publication IN SHARE MODE")
	},
}

func TestAPublishThatIsAheadOfThePassKeepsItsObject(t *testing.T) {
	t.Parallel()
	for kind, prepare := range targets {
		if kind == "a publish that seals" {
			continue // it lets the report go while it asks the storage: see below
		}
		for place, hold := range heads {
			t.Run(kind+" "+place, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				x := prepare(t, b)
				letGo := hold(t, b, x.name)
				publishing := async(func() error { return x.publish(t.Context()) })
				b.db.AwaitWaiting(t, 1)
				collecting := async(func() error { return pass(t.Context(), b.collector(atOnce)) })
				b.db.AwaitWaiting(t, 2)
				letGo()

				must(t, "publish", await(t, "the publish", publishing))
				must(t, "run a pass", await(t, "the pass", collecting))
				b.wantState(t, x.name, staging.Sealed)
				must(t, "run another pass", pass(t.Context(), b.collector(atOnce)))
				b.wantState(t, x.name, staging.Sealed)
				b.wantIntact(t)
			})
		}
	}
}

func TestWhatIsProlongedAheadOfThePassIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish that seals"](t, b)
	letGo := b.db.HoldReport(t, string(x.name.Report))
	sealing := async(func() error {
		_, err := b.objects.Seal(t.Context(), x.name)
		return err
	})
	b.db.AwaitWaiting(t, 1)
	collecting := async(func() error { return pass(t.Context(), b.collector(atOnce)) })
	b.db.AwaitWaiting(t, 2)
	letGo()
	must(t, "seal", await(t, "the seal", sealing))
	must(t, "run a pass", await(t, "the pass", collecting))
	b.wantState(t, x.name, staging.Sealed)
	must(t, "publish", x.publish(t.Context()))
	b.wantIntact(t)
}

func TestAPassWhileAPublishSealsIsEitherBeforeOrAfter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sealed bool // when the pass comes
		gone   bool
	}{
		"before the seal": {false, true},
		"after the seal":  {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			x := targets["a publish that seals"](t, b)
			s := newStop(t)
			slow := catalog.New(b.db.Pool, func(ctx context.Context, name fencing.ObjectName) error {
				if !tc.sealed {
					s.wait()
				}
				_, err := b.objects.Seal(ctx, name)
				if tc.sealed {
					s.wait()
				}
				return err
			}, catalog.Config{})
			publishing := async(func() error {
				_, err := slow.Publish(t.Context(), catalog.Request{
					Report: x.name.Report, Fence: x.name.Fence, Object: x.name.Object, IdempotencyKey: "k",
				})
				return err
			})
			s.arrived(t)
			must(t, "run a pass", pass(t.Context(), b.collector(atOnce)))
			s.letGo()

			err := await(t, "the publish", publishing)
			if tc.gone {
				wantGone(t, err)
			} else {
				must(t, "publish", err)
			}
			b.wantIntact(t)
		})
	}
}

func TestAnObjectThatIsLockedIsLeftForTheNextPass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	letGo := b.holdObject(t, x.name)
	if run := collect(t, b.collector()); run.Condemned != 0 {
		t.Errorf("%d objects were condemned while one was locked, want none", run.Condemned)
	}
	letGo()
	if run := collect(t, b.collector()); run.Condemned != 1 {
		t.Errorf("%d objects were condemned afterwards, want 1", run.Condemned)
	}
}

func TestAPublishThatDiesAheadOfThePassKeepsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a roll-back"](t, b)
	letGo := b.db.Hold(t, "LOCK TABLE publication IN SHARE MODE")
	publishing := async(func() error { return x.publish(t.Context()) })
	b.db.AwaitWaiting(t, 1)
	collecting := async(func() error { return pass(t.Context(), b.collector(atOnce)) })
	b.db.AwaitWaiting(t, 2)
	b.db.Exec(t, `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE '%FROM publish(%' AND pid <> pg_backend_pid()`)
	if err := await(t, "the publish", publishing); err == nil {
		t.Error("the publish was applied although its session ended")
	}
	must(t, "run a pass", await(t, "the pass", collecting))
	letGo()
	b.wantState(t, x.name, "")
	b.wantIntact(t)
	if got := testdb.Value[int64](t, b.db, "SELECT version FROM report"); got != 2 {
		t.Errorf("the report has version %d, want 2", got)
	}
}
