package verify_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/verify"
)

// logged keeps what is logged, and panics once when it is told to.
type logged struct {
	slog.Handler
	panics sync.Once

	mu       sync.Mutex
	messages []string
}

// Enabled implements slog.Handler.
func (l *logged) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	l.messages = append(l.messages, r.Message)
	l.mu.Unlock()
	if r.Message == alarm {
		l.panics.Do(func() { panic("the test's") })
	}
	return nil
}

// alarm is what the log says of each fault.
const alarm = "bytes are not as they were published"

func (l *logged) says(message string) (times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.messages {
		if strings.HasPrefix(m, message) {
			times++
		}
	}
	return times
}

// serve runs what is due until the test ends.
func serve(t *testing.T, v *verify.Verifier) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- v.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, "serve", await(t, "the end of Serve", ended))
	})
}

// awaitRuns returns when so many runs have ended in the outcome.
func (b *bundle) awaitRuns(t testing.TB, n int, outcome string) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for testdb.Value[int](t, b.db, "SELECT count(*) FROM verify_run WHERE outcome = $1", outcome) < n {
		select {
		case <-deadline:
			t.Fatalf("%d runs that are %s did not come", n, outcome)
		case <-tick.C:
		}
	}
}

func TestTheScheduleRunsAlsoAfterARunThatPanicked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.many(t, 3)
	b.storage.Delete(t, "reports/r001/1.1/data")
	log := &logged{Handler: slog.DiscardHandler}
	serve(t, b.verifier(func(c *verify.Config) { c.Schedule, c.Log = "@every 1s", slog.New(log) }))
	b.awaitRuns(t, 2, "completed")
	if log.says("cron: panic") != 1 || log.says(alarm) < 2 || log.says("verification completed") < 1 {
		t.Errorf("the log says %v", log.messages)
	}
	first, err := b.verifier().Record(t.Context(), 1)
	must(t, "read the record", err)
	if first.Attempt != 2 || first.Objects != 3 || first.StartedBy != "schedule" || first.Deep {
		t.Errorf("the run that panicked was gone on with as %+v", first)
	}
}

func TestARunIsTriggeredAndStopsWithTheService(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.next(t, "july", "hello")
	v, arrived, letGo := stopped(t, b, p.Key)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Serve(ctx) }()
	id, err := v.Trigger(t.Context(), verify.Options{By: "an operator", Deep: true})
	must(t, "trigger", err)
	await(t, "the look at the object", arrived)
	if r, err := v.Record(t.Context(), id); err != nil || r.StartedBy != "an operator" || r.FinishedAt != nil || !r.Deep {
		t.Errorf("its record says %+v, %v", r, err)
	}
	cancel()
	close(letGo)
	must(t, "serve", await(t, "the end of Serve", ended))
	if r, err := v.Record(t.Context(), id); err != nil || r.Outcome == nil {
		t.Errorf("its record says %+v, %v: want that it ended", r, err)
	}
}

func TestRecordsAreForgottenButForTheLastThatWasCompleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.next(t, "july", "hello")
	b.storage.Delete(t, p.Key)
	v := b.verifier()
	for _, deep := range []bool{false, true, false} {
		look(t, v, verify.Options{Deep: deep})
	}
	b.db.Advance(t, 91*24*time.Hour)
	look(t, v, verify.Options{})
	records, err := v.Records(t.Context(), 0, 10)
	must(t, "list the records", err)
	var ids []int64
	for _, r := range records {
		ids = append(ids, r.VerificationID)
	}
	if len(ids) != 3 || ids[0] != 4 || ids[1] != 3 || ids[2] != 2 {
		t.Errorf("the records left are %v, want 4, 3 and 2", ids)
	}
	wantPresent(t, v, 1)
}
