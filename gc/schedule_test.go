package gc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/schedule"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// serve runs the collector until the returned function ends it, or the test; it must not fail.
func serve(t *testing.T, c *gc.Collector) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	serving := async(func() (err error) {
		// The label is the way to find what it has left running.
		pprof.Do(ctx, pprof.Labels("serve", t.Name()), func(ctx context.Context) { err = c.Serve(ctx) })
		return err
	})
	end = sync.OnceFunc(func() {
		cancel()
		must(t, "serve", await(t, "the end of Serve", serving))
	})
	t.Cleanup(end)
	return end
}

// everySecond is a schedule by which passes come as often as a schedule can say.
func everySecond(cfg *gc.Config) { cfg.Schedule = "@every 1s" }

// awaitRuns returns when so many passes have ended in the outcome.
func (b *bundle) awaitRuns(t testing.TB, n int, outcome string) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_run WHERE outcome = $1", outcome) < n {
		select {
		case <-deadline:
			t.Fatalf("%d passes that are %s did not come", n, outcome)
		case <-tick.C:
		}
	}
}

func TestAPanicInOnePassDoesNotStopTheNext(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, *bundle, *deletes){
		"that the schedule began": func(t *testing.T, b *bundle, d *deletes) {
			serve(t, b.collectorOn(d, instant, everySecond))
		},
		"that was triggered": func(t *testing.T, b *bundle, d *deletes) {
			c := b.collectorOn(d, instant)
			serve(t, c)
			_, err := c.Trigger(t.Context(), gc.Options{By: "test"})
			must(t, "trigger", err)
			b.awaitRuns(t, 1, "failed")
			_, err = c.Trigger(t.Context(), gc.Options{By: "test"})
			must(t, "trigger again", err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			x := targets["a publish"](t, b)
			panicked := false
			d := &deletes{Bucket: b.bucket, before: func() error {
				if !panicked {
					panicked = true
					panic("the test's")
				}
				return nil
			}}
			begin(t, b, d)
			b.awaitRuns(t, 1, "completed")
			b.wantState(t, x.name, staging.Deleted)
			if text := testdb.Value[string](t, b.db, "SELECT error FROM gc_run WHERE outcome = 'failed' LIMIT 1"); !strings.Contains(text, "broke off") {
				t.Errorf("the record of the pass that panicked says %q", text)
			}
		})
	}
}

func TestScheduledPassesDoNotOverlap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	targets["a publish"](t, b)
	s, log := newStop(t), newRecordedLog()
	d := &deletes{Bucket: b.bucket, before: s.wait}
	serve(t, b.collectorOn(d, atOnce, everySecond, log.use))
	s.arrived(t)
	other := newRecordedLog()
	serve(t, b.collector(everySecond, other.use)) // another process on the same database

	log.await(t, "cron: skip")
	other.await(t, "no scheduled collector pass: one is under way")
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_run"); n != 1 {
		t.Errorf("%d passes began while the first had not ended", n)
	}
	s.letGo()
	b.awaitRuns(t, 2, "completed")
}

func TestAScheduleIsReadInUTC(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, offset := time.Now().Zone(); offset == 0 {
		t.Fatal("the test's own zone is UTC")
	}
	c := b.collector(func(cfg *gc.Config) { cfg.Schedule = "30 2 * * *" })
	// On the night in which clocks in many places are put forward, and on that in which they are put back.
	for _, day := range []string{"2026-03-29", "2026-10-25", "2026-06-01"} {
		midnight, err := time.Parse(time.DateOnly, day)
		must(t, "parse the day", err)
		first, err := c.Next(t.Context(), midnight.In(time.Local))
		must(t, "read the schedule", err)
		second, err := c.Next(t.Context(), first)
		must(t, "read the schedule", err)
		if !first.Equal(midnight.Add(2*time.Hour+30*time.Minute)) || second.Sub(first) != 24*time.Hour {
			t.Errorf("after %v the passes are due at %v and %v, want 02:30 UTC and a day later", midnight, first.UTC(), second.UTC())
		}
	}
}

func TestABadScheduleIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, text := range []string{"nonsense", "* * * *", "61 * * * *", "@every", "@every soon", "@never", "* * * * * *"} {
		if schedule.Parse(text) == nil {
			t.Errorf("%q was parsed", text)
		}
		err := b.collector(func(cfg *gc.Config) { cfg.Schedule = text }).Serve(t.Context())
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("serving by the schedule %q ended in %v, want an error that names it", text, err)
		}
	}
	for _, text := range []string{"*/5 * * * *", "@every 1s", "@hourly", "30 2 * * 0"} {
		must(t, "parse "+text, schedule.Parse(text))
	}
}

func TestServeStopsAPassThatIsUnderWayAndLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	s := newStop(t)
	d := &deletes{Bucket: b.bucket, before: s.wait}
	d.sent = func(refs []staging.ObjectRef) { t.Errorf("a delete was sent after the end: %v", refs) }
	c := b.collectorOn(d, atOnce, everySecond)
	ctx, cancel := context.WithCancel(t.Context())
	serving := async(func() (err error) {
		pprof.Do(ctx, pprof.Labels("serve", t.Name()), func(ctx context.Context) { err = c.Serve(ctx) })
		return err
	})
	s.arrived(t)
	if running := leftRunning(t); running == 0 {
		t.Fatal("nothing is seen to run while it serves")
	}
	cancel()
	select {
	case <-serving:
		t.Error("it returned before its pass had stopped")
	default:
	}
	s.letGo()
	must(t, "serve", await(t, "the end of Serve", serving))
	b.wantState(t, x.name, staging.Condemned)
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_run WHERE finished_at IS NULL"); n != 0 {
		t.Error("its pass still counts as under way")
	}

	deadline, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for leftRunning(t) > 0 {
		select {
		case <-deadline:
			t.Fatalf("%d goroutines of the collector are left", leftRunning(t))
		case <-tick.C:
		}
	}
}

// leftRunning counts the goroutines of the collector and its scheduler that the test has labelled.
func leftRunning(t testing.TB) (n int) {
	t.Helper()
	var profile bytes.Buffer
	must(t, "list the goroutines", pprof.Lookup("goroutine").WriteTo(&profile, 1))
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(group, t.Name()) && (strings.Contains(group, "fenceline/gc.") || strings.Contains(group, "robfig/cron")) {
			n++
		}
	}
	return n
}

func TestTriggerBeginsAPassAndTellsItsNumber(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	s := newStop(t)
	c := b.collectorOn(&deletes{Bucket: b.bucket, before: s.wait}, instant)
	serve(t, c)
	id, err := c.Trigger(t.Context(), gc.Options{By: "an operator"})
	must(t, "trigger", err)
	s.arrived(t)
	if run := record(t, c, id); run.StartedBy != "an operator" || run.FinishedAt != nil {
		t.Errorf("its record says %+v, want that it is under way", run)
	}
	_, err = c.Trigger(t.Context(), gc.Options{})
	if running, ok := errors.AsType[*gc.AlreadyRunningError](err); !ok || running.RunID != id {
		t.Errorf("a second one ended in %v, want that run %d is under way", err, id)
	}
	s.letGo()
	b.awaitRuns(t, 1, "completed")
	b.wantState(t, x.name, staging.Deleted)
}

func TestAPassThatWasTriggeredAsTheServiceStopsIsNotLeftUnderWay(t *testing.T) {
	t.Parallel()
	for range 4 { // of the two ways in which Serve may come upon it
		b := setup(t)
		c := b.collector()
		id, err := c.Trigger(t.Context(), gc.Options{})
		must(t, "trigger", err)
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, "serve", c.Serve(stopped))
		if run := record(t, c, id); run.Outcome == nil || *run.Outcome != "stopped" {
			t.Errorf("its record says %+v, want that it was stopped", run)
		}
	}
}

// recordedLog keeps the messages of a log.
type recordedLog struct {
	slog.Handler
	messages chan string
}

func newRecordedLog() *recordedLog {
	return &recordedLog{slog.DiscardHandler, make(chan string, 10000)}
}

func (l *recordedLog) use(cfg *gc.Config) { cfg.Log = slog.New(l) }

// Enabled implements slog.Handler.
func (l *recordedLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *recordedLog) Handle(_ context.Context, r slog.Record) error {
	l.messages <- r.Message
	return nil
}

// await returns when the message was logged.
func (l *recordedLog) await(t testing.TB, message string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case got := <-l.messages:
			if got == message {
				return
			}
		case <-deadline:
			t.Fatalf("%q was not logged", message)
		}
	}
}
