package gc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

// points are where a pass dies. Each is told which hook of the deletes it is, or what the pass has to tell
// first.
var points = map[string]func(*deletes, *gc.Options, func() error){
	"after the first was condemned": func(_ *deletes, o *gc.Options, die func() error) {
		o.Each = func(gc.Entry) { die() }
	},
	"before the delete is sent":               func(d *deletes, _ *gc.Options, die func() error) { d.before = die },
	"after the delete, before it is recorded": func(d *deletes, _ *gc.Options, die func() error) { d.after = die },
	"after the first was recorded": func(_ *deletes, o *gc.Options, die func() error) {
		o.Each = func(e gc.Entry) {
			if e.Action == "deleted" {
				die()
			}
		}
	},
}

// deaths are ways to die there. One that ends the process writes nothing down: the pass counts as under way
// until it has been silent for too long.
var deaths = map[string]struct {
	die   func(*testing.T, *bundle, context.CancelFunc) error
	wakes bool
}{
	"cancelled": {func(_ *testing.T, _ *bundle, cancel context.CancelFunc) error { cancel(); return nil }, false},
	"a panic":   {func(*testing.T, *bundle, context.CancelFunc) error { panic("the test's") }, false},
	"an error":  {func(*testing.T, *bundle, context.CancelFunc) error { return errors.New("the test's") }, false},
	"its sessions ended": {func(t *testing.T, b *bundle, _ context.CancelFunc) error {
		b.db.Exec(t, `
			SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND usename = 'fenceline_service'`)
		return nil
	}, false},
	"the process ended": {nil, true},
}

func TestAPassThatDiesAnywhereIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for point, at := range points {
		for death, how := range deaths {
			t.Run(death+" "+point, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				g := b.grant(t, "july")
				for i := range 3 {
					b.stage(t, g, fencing.ObjectID(fmt.Sprint(i)), "x")
				}
				visible := b.next(t, "august", "stays")
				b.db.Advance(t, retention+leaseTTL)
				cfg := func(cfg *gc.Config) { cfg.Batch, cfg.PurgeGrace, cfg.Silence = 2, instantly, silence }

				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := newStop(t)
				d, options, died := &deletes{Bucket: b.bucket}, gc.Options{}, false
				at(d, &options, func() error {
					switch {
					case died:
						return nil
					case how.wakes:
						return s.wait()
					}
					died = true
					return how.die(t, b, cancel)
				})
				p, err := b.collectorOn(d, cfg).Begin(t.Context(), options)
				must(t, "begin", err)
				dying := async(func() (err error) {
					defer func() {
						if r := recover(); r != nil {
							err = fmt.Errorf("panic: %v", r)
						}
					}()
					return p.Run(ctx)
				})
				if how.wakes {
					s.arrived(t)
				} else if err := await(t, "the end of the pass", dying); err == nil && death != "an error" && death != "its sessions ended" {
					t.Fatal("it did not die")
				}

				b.db.Advance(t, silence+time.Second) // whatever could not be written down any more
				collect(t, b.collector(cfg))
				s.letGo()
				if how.wakes {
					if err := await(t, "the end of the pass", dying); !errors.Is(err, gc.ErrRunEnded) {
						t.Errorf("the first pass ended in %v", err)
					}
				}
				b.wantFinished(t, 3, visible)
			})
		}
	}
}

// wantFinished fails the test unless so many objects were condemned and deleted, each once, and nothing but
// one visible object is left.
func (b *bundle) wantFinished(t testing.TB, objects int, visible fencing.ObjectName) {
	t.Helper()
	const twice = `SELECT count(*) FROM (SELECT FROM gc_ledger GROUP BY action, key HAVING count(*) > 1) twice`
	if n := testdb.Value[int](t, b.db, twice); n != 0 {
		t.Errorf("%d entries of the ledger are doubled", n)
	}
	for _, action := range []string{"condemned", "deleted"} {
		if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_ledger WHERE action = $1", action); n != objects {
			t.Errorf("%d objects were %s, want %d", n, action, objects)
		}
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_run WHERE finished_at IS NULL"); n != 0 {
		t.Errorf("%d passes are still under way", n)
	}
	if keys := b.keys(t); keys != keyOf(visible) {
		t.Errorf("the keys left are %q, want the visible one", keys)
	}
	b.wantIntact(t)
}

func TestKilledAtFiveHundredOfAThousandTheNextPassReclaimsTheRest(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*deletes, func() error){
		"before the second delete": func(d *deletes, die func() error) { d.before = die },
		"after the second delete":  func(d *deletes, die func() error) { d.after = die },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			visible := b.next(t, "august", "stays")
			g := b.grant(t, "july")
			var group errgroup.Group
			group.SetLimit(8)
			for i := range 1000 {
				group.Go(func() error {
					_, r, err := b.reserve(t.Context(), g, fencing.ObjectID(fmt.Sprint(i)), "x")
					if err != nil {
						return err
					}
					return upload(t.Context(), r.Upload, "x")
				})
			}
			must(t, "upload a thousand objects", group.Wait())
			b.db.Advance(t, retention+leaseTTL)

			d, calls := &deletes{Bucket: b.bucket}, 0
			kill(d, func() error {
				if calls++; calls == 2 {
					return errors.New("killed")
				}
				return nil
			})
			if err := pass(t.Context(), b.collectorOn(d, instant)); err == nil {
				t.Fatal("the pass was not killed")
			}
			if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM object WHERE state = 'deleted'"); n != 500 {
				t.Errorf("%d objects were recorded before the kill, want 500", n)
			}
			if run := collect(t, b.collector(instant)); run.Condemned != 0 || run.Deleted != 500 {
				t.Errorf("the next pass condemned %d and deleted %d, want 0 and 500", run.Condemned, run.Deleted)
			}
			b.wantFinished(t, 1000, visible)
		})
	}
}
