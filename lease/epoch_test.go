package lease_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// newIdentity makes the database another one than was verified: its table is rewritten, as by a restore.
func (o office) newIdentity(t *testing.T) {
	t.Helper()
	o.db.Exec(t, "VACUUM FULL report")
}

// verified verifies the identity.
func (o office) verified(t *testing.T) (epoch int32, advanced bool) {
	t.Helper()
	epoch, advanced, err := o.VerifyEpoch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return epoch, advanced
}

func TestADatabaseThatNobodyHasVerifiedGrantsNothing(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	o := office{Authority: lease.New(db.Pool), db: db}
	_, err := o.Acquire(t.Context(), asking("july", "a7"))
	wantErr(t, err, database.ErrEpochInDoubt)
	if epoch, advanced := o.verified(t); epoch != 1 || !advanced {
		t.Errorf("the first epoch is %d (advanced: %v)", epoch, advanced)
	}
	if a := o.grant(t, "july", "a7"); a.Fence != (fencing.Fence{Epoch: 1, Counter: 1}) {
		t.Errorf("the first fence is %s", a.Fence)
	}
}

func TestAVerifiedDatabaseStaysInItsEpoch(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 3 {
		if epoch, advanced := o.verified(t); epoch != 1 || advanced {
			t.Errorf("epoch %d, advanced: %v", epoch, advanced)
		}
	}
}

func TestNothingIsDecidedBetweenANewIdentityAndItsVerification(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.grant(t, "july", "a7")
	o.newIdentity(t)

	for name, change := range map[string]func() error{
		"acquire": func() error { _, err := o.Acquire(t.Context(), asking("july", "b9")); return err },
		"replay":  func() error { _, err := o.Acquire(t.Context(), asking("july", "a7")); return err },
		"renew":   func() error { _, err := o.Renew(t.Context(), "july", "a7", 0); return err },
		"release": func() error { _, err := o.Release(t.Context(), "july", "a7"); return err },
		"revoke": func() error {
			_, err := o.Revoke(t.Context(), lease.Revocation{Report: "july", Reason: "test"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := change()
			wantErr(t, err, database.ErrEpochInDoubt)
			wantErr(t, err, database.ErrUnavailable)
		})
	}
	if e, err := o.Epoch(t.Context()); err != nil || e.Verified {
		t.Errorf("the epoch is %+v, %v", e, err)
	}

	if epoch, advanced := o.verified(t); epoch != 2 || !advanced {
		t.Fatalf("epoch %d, advanced: %v", epoch, advanced)
	}
	// Nobody lost anything by it: the lease is as it was, and there is no floor.
	if r := o.renewed(t, "july", "a7", 0); r.Fence != a.Fence {
		t.Errorf("the lease has fence %s, want %s", r.Fence, a.Fence)
	}
	o.released(t, "july", "a7")
	want := fencing.Fence{Epoch: 2, Counter: a.Fence.Counter + 1}
	if b := o.grant(t, "july", "b9"); b.Fence != want {
		t.Errorf("granted %s, want %s: the counter goes on", b.Fence, want)
	}
}

func TestAChangeThatHasEnteredHoldsTheNextEpochBack(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.released(t, "july", "seen")
	letGo := o.db.HoldReport(t, "july")
	acquired := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "a7")) })
	o.db.AwaitWaiting(t, 1)
	// The identity that was verified last is not this database's.
	o.db.Exec(t, `
		INSERT INTO epoch
		SELECT 2, 1, began_at, 'test', system_identifier, timeline, postmaster_started_at - interval '1 hour', database_oid, report_filenode
		FROM epoch`)

	type advance struct {
		epoch int32
		seen  int // grants that stood in the database when the advance was answered
	}
	advanced := later(func() (advance, error) {
		epoch, _, err := o.VerifyEpoch(t.Context())
		return advance{epoch, testdb.Value[int](t, o.db, "SELECT count(*)::int FROM lease WHERE fence_epoch IS NOT NULL")}, err
	})
	o.db.AwaitWaiting(t, 2) // the advance does not pass the change
	late := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("august", "b9")) })
	o.db.AwaitWaiting(t, 3) // and what comes after the advance does not pass the advance
	letGo()

	a, v, b := acquired(), advanced(), late()
	if a.err != nil || a.got.Fence.Epoch != 1 {
		t.Errorf("the change that had entered got %+v, %v", a.got, a.err)
	}
	if v.err != nil || v.got != (advance{epoch: 3, seen: 1}) && v.got != (advance{epoch: 3, seen: 2}) {
		t.Errorf("the advance got %+v, %v, want epoch 3 with the grant committed", v.got, v.err)
	}
	if b.err != nil || b.got.Fence.Epoch != 3 {
		t.Errorf("the change that came later got %+v, %v", b.got, b.err)
	}
}

func TestOfManyWhoVerifyANewIdentityAtOnceOneAdvances(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.newIdentity(t)
	var all sync.WaitGroup
	advances := make(chan bool, 16)
	for range cap(advances) {
		all.Go(func() {
			epoch, advanced, err := o.VerifyEpoch(t.Context())
			if err != nil || epoch != 2 {
				t.Errorf("epoch %d, %v", epoch, err)
			}
			advances <- advanced
		})
	}
	all.Wait()
	close(advances)
	count := 0
	for advanced := range advances {
		if advanced {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d of them advanced", count)
	}
}

func TestTheWatchVerifiesANewIdentityByItself(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ctx, stop := context.WithCancel(t.Context())
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		o.WatchEpoch(ctx, slog.New(slog.DiscardHandler))
	}()
	o.newIdentity(t)
	deadline := time.After(30 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		e, err := o.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Verified && e.Epoch == 2 {
			tick.Stop()
			break
		}
		select {
		case <-deadline:
			t.Fatalf("still %+v", e)
		case <-tick.C:
		}
	}
	stop()
	<-watching
}
