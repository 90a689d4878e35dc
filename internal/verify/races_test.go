package verify_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/verify"
)

// stopped is the bucket before which the first request for a key waits, and tells that it has come, until it is let go.
func stopped(t *testing.T, b *bundle, key string) (v *verify.Verifier, arrived, letGo chan struct{}) {
	arrived, letGo = make(chan struct{}, 10), make(chan struct{})
	v = b.verifierOn(b.through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/"+key) {
			arrived <- struct{}{}
			<-letGo
		}
		next.ServeHTTP(w, r)
	}))
	return v, arrived, letGo
}

// begun is a run that goes on by itself.
type begun struct {
	got told
	err error
}

func start(t *testing.T, v *verify.Verifier, o verify.Options) <-chan begun {
	ended := make(chan begun, 1)
	go func() {
		got, err := run(t, v, o)
		ended <- begun{got, err}
	}()
	return ended
}

func await[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func TestWhatGoesBetweenTheCatalogAndTheStorageIsNoFault(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(*testing.T, *bundle, published){
		"erased": func(t *testing.T, b *bundle, p published) { b.erase(t, p) },
		"collected": func(t *testing.T, b *bundle, p published) {
			b.db.Advance(t, 15*24*time.Hour)
			for range 2 { // one pass condemns, and once the grace is over the other deletes
				b.collect(t)
				b.db.Advance(t, 25*time.Hour)
			}
		},
		"forgotten": func(t *testing.T, b *bundle, p published) {
			b.db.Advance(t, 15*24*time.Hour)
			for range 3 {
				b.collect(t)
				b.db.Advance(t, 91*24*time.Hour)
			}
		},
	} {
		for _, deep := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				p := b.next(t, "july", "hello")
				b.next(t, "july", "anew")
				v, arrived, letGo := stopped(t, b, p.Key)
				// The clock is moved on meanwhile, by more than a run may be silent.
				ended := start(t, v, verify.Options{Deep: deep})
				await(t, "the look at the object", arrived)
				goes(t, b, p)
				if keys := b.storage.Keys(t); len(keys) != 1 {
					t.Errorf("the bucket holds %v", keys)
				}
				close(letGo)
				got := await(t, "the end of the run", ended)
				must(t, "run", got.err)
				b.wantFaults(t, v, got.got)
				if got.got.Objects != 1 {
					t.Errorf("%d objects were counted, want the one that is still shown", got.got.Objects)
				}
			})
		}
	}
}

// collect runs a pass of the collector.
func (b *bundle) collect(t testing.TB, changes ...func(*gc.Config)) {
	t.Helper()
	cfg := gc.Config{BrakeMin: 1 << 40}
	for _, change := range changes {
		change(&cfg)
	}
	c := gc.New(b.db.Pool, b.bucket, cfg)
	p, err := c.Begin(t.Context(), gc.Options{By: "test"})
	must(t, "begin a pass", err)
	must(t, "run a pass", p.Run(t.Context()))
}

func TestPublishesAndTheCollectorGoOnBesideARun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 4 {
		for v := range 10 {
			b.next(t, fencing.ReportID(fmt.Sprint("r", i)), fmt.Sprint("version ", v))
		}
	}
	b.db.Advance(t, 15*24*time.Hour)
	v := b.verifier(func(c *verify.Config) { c.Pace = 100 })
	ended := start(t, v, verify.Options{})
	var beside errgroup.Group
	for i := range 4 {
		beside.Go(func() error {
			for n := range 5 {
				b.next(t, fencing.ReportID(fmt.Sprint("r", i)), fmt.Sprint("late ", n))
			}
			return nil
		})
	}
	b.collect(t, func(c *gc.Config) { c.PurgeGrace = time.Nanosecond }) // condemns and deletes at once
	must(t, "publish", beside.Wait())
	got := await(t, "the end of the run", ended)
	must(t, "run", got.err)
	b.wantFaults(t, v, got.got)
	if left := len(b.storage.Keys(t)); left != 4*6 {
		t.Errorf("%d keys are left, want the visible versions and those published since", left)
	}
	b.wantFaults(t, v, look(t, v, verify.Options{Deep: true}))
}

func TestOneRunOfEachKindIsUnderWayAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.next(t, "july", "hello")
	v, arrived, letGo := stopped(t, b, p.Key)
	ended := start(t, v, verify.Options{})
	await(t, "the look at the object", arrived)
	_, err := b.verifier().Begin(t.Context(), verify.Options{Restart: true})
	if running, ok := errors.AsType[*verify.AlreadyRunningError](err); !ok || running.VerificationID != 1 {
		t.Errorf("a second one ended in %v, want that run 1 is under way", err)
	}
	other := b.verifier()
	b.wantFaults(t, other, look(t, other, verify.Options{Deep: true}))
	close(letGo)
	must(t, "run", await(t, "the end of the run", ended).err)
	if again := look(t, v, verify.Options{}); again.VerificationID != 3 {
		t.Errorf("the next one is run %d, want a new one", again.VerificationID)
	}
}

func TestARunThatWasWrittenOffStopsAndCountsNothingTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, report := range []fencing.ReportID{"a", "b", "c"} {
		b.storage.Delete(t, b.next(t, report, "hello").Key)
	}
	v, arrived, letGo := stopped(t, b, "reports/b/1.1/data")
	ended := start(t, v, verify.Options{})
	await(t, "the look at the object", arrived)
	b.db.Advance(t, time.Hour) // it counts as dead; by its own clock it does not
	other := b.verifier()
	r, err := other.Begin(t.Context(), verify.Options{})
	must(t, "begin", err)
	if !r.Resumed || r.ID != 1 {
		t.Errorf("begun was run %d, resumed %v", r.ID, r.Resumed)
	}
	must(t, "run", r.Run(t.Context()))
	close(letGo)
	if got := await(t, "the end of the first", ended); !errors.Is(got.err, verify.ErrRunEnded) {
		t.Errorf("it ended in %v, want that it was written off", got.err)
	}
	record, err := other.Record(t.Context(), 1)
	must(t, "read the record", err)
	if record.Objects != 3 || record.Faults != 3 || *record.Outcome != "completed" || record.Attempt != 2 {
		t.Errorf("the record says %+v", record)
	}
	wantPresent(t, other, 3)
}
