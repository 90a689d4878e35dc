package crowd_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/crowd"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
)

// served lets a crowd wait on a database of its own, and fails the test where anything is not as it must be.
func served(t *testing.T, cfg crowd.Config) crowd.Result {
	t.Helper()
	db := testdb.New(t)
	cfg.OwnerURL, cfg.Hold = db.OwnerURL, 20*time.Millisecond
	cfg.Service = service.Config{
		Database: database.Config{URL: db.URL, Pool: 20},
		Bucket:   testbucket.New(t).Config,
		Log:      slog.New(slog.DiscardHandler),
	}
	r, err := crowd.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d waited from %v to %v, half of them up to %v; %.2f statements a hand-over; %d of %d who went were granted a lease",
		len(r.Waits), r.Waits[0], r.Quantile(1), r.Median(), r.Statements, r.ToGone, r.Gone)
	t.Logf("before: %+v, after: %+v, in %v; of the first half the instances had %v", r.Before, r.After, r.Took, r.FirstHalf)
	for _, what := range r.Broken {
		t.Error(what)
	}
	if len(r.Waits) != cfg.Waiters-cfg.Leavers {
		t.Errorf("%d were served, want %d", len(r.Waits), cfg.Waiters-cfg.Leavers)
	}
	return r
}

func TestACrowdIsServedInItsOrderAndAHandOverCostsAFewStatements(t *testing.T) {
	t.Parallel()
	served(t, crowd.Config{Waiters: 500})
}

func TestNobodyStarvesAtEitherOfTwoInstances(t *testing.T) {
	t.Parallel()
	served(t, crowd.Config{Waiters: 200, Replicas: 2})
}

func TestACrowdOfWhichHalfGoesAwayLeavesNothingAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r := served(t, crowd.Config{Waiters: 500, Leavers: 250})
	if r.Gone != 250 || r.ToGone < 3 || r.ToGone > 5 { // three with the lease in their hands, and two just then
		t.Errorf("%d went, and %d of them were granted a lease, want 250, and 3 to 5", r.Gone, r.ToGone)
	}
}
