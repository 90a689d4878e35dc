package verify_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// many publishes so many reports.
func (b *bundle) many(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		b.next(t, fencing.ReportID(fmt.Sprintf("r%03d", i)), "hello")
	}
}

func TestARunStopsWhereTheStorageIsAwayAndGoesOnFromThere(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(w http.ResponseWriter){
		"hangs up": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"fails":    func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"refuses":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
		"is empty": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.many(t, 40)
			b.storage.Delete(t, "reports/r003/1.1/data")
			b.storage.Delete(t, "reports/r033/1.1/data")
			var requests asked
			var gone atomic.Bool
			v := b.verifierOn(b.through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if gone.Load() || requests.note(r) > 20 {
					gone.Store(true)
					away(w)
					return
				}
				next.ServeHTTP(w, r)
			}))
			first, err := run(t, v, verify.Options{})
			if err == nil || !strings.Contains(err.Error(), "the storage is away") {
				t.Errorf("it ended in %v", err)
			}
			b.wantFaults(t, v, first, "r003 [1] missing")
			if *first.Outcome != "stopped" || first.Error == nil || first.Objects < 5 || first.Objects > 20 {
				t.Errorf("the record says %+v", first.Record)
			}

			var later asked
			v = b.verifierOn(b.through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				later.note(r)
				next.ServeHTTP(w, r)
			}))
			second := look(t, v, verify.Options{})
			if second.VerificationID != first.VerificationID || second.Objects != 40 || second.Faults != 2 || second.Attempt != 2 || *second.TotalObjects != 40 {
				t.Errorf("the record says %+v", second.Record)
			}
			if len(later.times) != 40-int(first.Objects) {
				t.Errorf("%d objects were asked for after %d were passed", len(later.times), first.Objects)
			}
			written, err := v.Findings(t.Context(), first.VerificationID, catalog.Names{}, verify.After{}, 10)
			if err != nil || len(written) != 2 || written[0].Object.Report != "r003" || written[1].Object.Report != "r033" {
				t.Errorf("written down is %+v, %v", written, err)
			}
			if third := look(t, v, verify.Options{}); third.VerificationID == second.VerificationID || third.Attempt != 1 {
				t.Errorf("what was completed was gone on with: %+v", third.Record)
			}
		})
	}
}

func TestAnObjectThatCannotBeAskedForIsTellableAndStopsNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]int{"refused": http.StatusForbidden, "a fault of its own": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.many(t, 10)
			var well atomic.Bool
			v := b.verifierOn(b.through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if !well.Load() && strings.Contains(r.URL.Path, "/r004/") {
					w.WriteHeader(answer)
					return
				}
				next.ServeHTTP(w, r)
			}))
			got := look(t, v, verify.Options{})
			b.wantFaults(t, v, got, "r004 [1] unreadable")
			if got.Findings[0].Detail == "" || got.Findings[0].Found.Size != nil || got.Objects != 10 {
				t.Errorf("told was %+v", got)
			}
			well.Store(true)
			b.wantFaults(t, v, look(t, v, verify.Options{}))
			wantPresent(t, v, 0)
		})
	}
}

func TestOneAnswerThatFailsIsAskedForAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.many(t, 3)
	var failures atomic.Int32
	v := b.verifierOn(b.through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/r001/") && failures.Add(1) <= 5 { // past what the client repeats by itself
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	}))
	b.wantFaults(t, v, look(t, v, verify.Options{Deep: true}))
}

func TestABucketThatIsNotTheCatalogsHasNothingMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.many(t, 3)
	empty := testbucket.New(t)
	got, err := run(t, b.verifierOn(empty.Open(t)), verify.Options{})
	if !errors.Is(err, staging.ErrSecondBucket) || len(got.Findings) != 0 || *got.Outcome != "stopped" {
		t.Errorf("it ended in %v: %+v", err, got)
	}
	if keys := empty.Versions(t); len(keys) != 0 {
		t.Errorf("it wrote %v", keys)
	}
}

func TestARunThatIsInterruptedGoesOnUnlessItIsToBeginAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next    verify.Options
		between func(*bundle, *testing.T)
		resumes bool
	}{
		"the same":               {verify.Options{}, nil, true},
		"restarted":              {verify.Options{Restart: true}, nil, false},
		"with the bytes":         {verify.Options{Deep: true}, nil, false},
		"of other reports":       {verify.Options{Pattern: "r*", Names: catalog.Names{From: "r", Below: "s"}}, nil, false},
		"a week later":           {verify.Options{}, func(b *bundle, t *testing.T) { b.db.Advance(t, 8*24*time.Hour) }, false},
		"in the next epoch":      {verify.Options{}, func(b *bundle, t *testing.T) { b.advanceEpoch(t, false) }, true},
		"above a floor":          {verify.Options{}, func(b *bundle, t *testing.T) { b.advanceEpoch(t, true) }, false},
		"on a restored database": {verify.Options{}, (*bundle).restore, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.many(t, 12)
			ctx, interrupt := context.WithCancel(t.Context())
			v := b.verifier(func(c *verify.Config) { c.Concurrency = 1 })
			first, err := v.Begin(ctx, verify.Options{Progress: func(r verify.Record) {
				if r.Objects == 5 {
					interrupt()
				}
			}})
			must(t, "begin", err)
			if err := first.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("it ended in %v", err)
			}
			stopped, err := v.Record(t.Context(), first.ID)
			must(t, "read the record", err)
			if *stopped.Outcome != "stopped" || stopped.Objects < 5 || stopped.Objects > 7 {
				t.Errorf("the record says %+v", stopped)
			}
			if c.between != nil {
				c.between(b, t)
			}
			next := c.next
			var seen []int64
			next.Progress = func(r verify.Record) { seen = append(seen, r.Objects) }
			second, err := v.Begin(t.Context(), next)
			must(t, "begin again", err)
			must(t, "run", second.Run(t.Context()))
			if second.Resumed != c.resumes || (second.ID == first.ID) != c.resumes {
				t.Errorf("run %d was followed by %d, resumed: %v", first.ID, second.ID, second.Resumed)
			}
			from := int64(1)
			if c.resumes {
				from = stopped.Objects + 1
			}
			want := []int64{}
			for n := from; n <= 12; n++ {
				want = append(want, n)
			}
			if !slices.Equal(seen, want) {
				t.Errorf("it went through %v, want %v", seen, want)
			}
		})
	}
}

// advanceEpoch begins the next epoch.
func (b *bundle) advanceEpoch(t testing.TB, floor bool) {
	t.Helper()
	e, err := b.leases.Epoch(t.Context())
	must(t, "read the epoch", err)
	_, err = b.leases.AdvanceEpoch(t.Context(), lease.Advance{Expected: e.Epoch, Floor: floor, Reason: "test", By: "test"})
	must(t, "advance the epoch", err)
}

// restore has the catalog's runs be of another database, as those that a backup has brought along.
func (b *bundle) restore(t *testing.T) {
	t.Helper()
	b.db.Exec(t, `
		INSERT INTO epoch (epoch, floor_epoch, began_at, reason, system_identifier, timeline, postmaster_started_at, database_oid, report_filenode)
		SELECT 2, 1, began_at, 'test', system_identifier, 'another', postmaster_started_at, database_oid, report_filenode FROM epoch`)
	b.db.Exec(t, "UPDATE verify_run SET epoch = 2")
	_, _, err := b.leases.VerifyEpoch(t.Context())
	must(t, "verify the identity", err)
}
