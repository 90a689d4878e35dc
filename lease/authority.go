package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Authority grants, renews and ends leases. What it decides, it decides in the database, so that any
// number of them may work on the same one.
type Authority struct {
	pool *pgxpool.Pool
	line *line
}

// mostWaiting is how many requests may wait for leases in one process.
const mostWaiting = 2000

// New makes an authority on the database of pool.
func New(pool *pgxpool.Pool) *Authority { return &Authority{pool: pool, line: newLine(mostWaiting)} }

// Request asks for a lease.
type Request struct {
	Report fencing.ReportID
	Lease  fencing.LeaseID // new for each grant
	Holder string          // 1 to 200 characters, for people
	TTL    time.Duration   // in whole milliseconds, at least a second; it begins with the grant
	Wait   time.Duration   // how long to wait for a live lease to end; zero: not at all

	// MayStill is asked before the lease is, by a request that has waited for longer than a second: what let it wait may
	// have ended meanwhile. Its error ends the wait. Default: nothing has.
	MayStill func(context.Context) error
}

// Grant is a live lease.
type Grant struct {
	Report    fencing.ReportID
	Lease     fencing.LeaseID
	Holder    string
	Fence     fencing.Fence
	Remaining time.Duration // by the database's clock, as of the answer
	Waited    time.Duration // what passed before the database was asked, by this process's monotonic clock
	Version   int64         // the report's present version, 0 if there is none
	Replayed  bool          // the id held the lease already
}

// Acquire grants a lease, or repeats the answer to a request that was granted before and still holds. While
// another one is live it waits for as long as the request says, roughly in the order of arrival, and no longer
// than ctx lives. Errors: ErrBusy (*BusyError), ErrTooManyWaiting, ErrWaitEnded, ErrLost (*LostError) for an id that has ended,
// ErrIDReused, ErrCounterExhausted, fencing.ErrFrozen, database.ErrUnavailable.
func (a *Authority) Acquire(ctx context.Context, r Request) (Grant, error) {
	ask := a.acquire
	if r.Wait > 0 {
		ask = a.wait
	}
	grant, err := ask(ctx, r)
	if err == nil || errors.Is(err, ErrLost) {
		a.line.tell(r.Report, r.Lease)
	}
	return grant, err
}

// Waiting is how many requests wait for leases in this process.
func (a *Authority) Waiting() int { return a.line.size() }

// acquire asks the database once.
func (a *Authority) acquire(ctx context.Context, r Request) (Grant, error) {
	const query = `
		SELECT status, reason, holder, fence_epoch, fence_counter, remaining_ms, version
		FROM acquire(@report, @lease, @holder, @ttl_ms)`
	type answer struct {
		Status       string
		Reason       *string
		Holder       *string
		FenceEpoch   *int32
		FenceCounter *int64
		RemainingMS  *int64
		Version      *int64
	}
	got, err := database.Change[answer](ctx, a.pool, query, pgx.NamedArgs{
		"report": r.Report, "lease": r.Lease, "holder": r.Holder, "ttl_ms": r.TTL.Milliseconds(),
	})
	if err != nil {
		return Grant{}, fmt.Errorf("acquire lease %q of %q: %w", r.Lease, r.Report, err)
	}
	switch got.Status {
	case "acquired", "replayed":
		return Grant{
			Report: r.Report, Lease: r.Lease, Holder: *got.Holder,
			Fence:     fencing.Joined(got.FenceEpoch, got.FenceCounter),
			Remaining: milliseconds(*got.RemainingMS),
			Version:   *got.Version,
			Replayed:  got.Status == "replayed",
		}, nil
	case "busy":
		err = &BusyError{Holder: *got.Holder, RetryAfter: milliseconds(*got.RemainingMS)}
	case "lease_id_reused":
		err = ErrIDReused
	case "counter_exhausted":
		err = ErrCounterExhausted
	default:
		err = endedOrUnknown(got.Status, got.Reason)
	}
	return Grant{}, fmt.Errorf("acquire lease %q of %q: %w", r.Lease, r.Report, err)
}

// Renewal is a lease that goes on.
type Renewal struct {
	Fence     fencing.Fence // the same as at the grant
	Left      time.Duration // by the database's clock, what it had when the renewal was decided
	Remaining time.Duration // by the database's clock, as of the answer
}

// Renew prolongs a live lease to ttl from now, and never shortens it; ttl zero is the one of the grant.
// Errors: ErrLost (*LostError), ErrNotFound, database.ErrUnavailable.
func (a *Authority) Renew(ctx context.Context, report fencing.ReportID, id fencing.LeaseID, ttl time.Duration) (Renewal, error) {
	const query = `
		SELECT status, reason, fence_epoch, fence_counter, left_ms, remaining_ms
		FROM renew(@report, @lease, nullif(@ttl_ms::bigint, 0))`
	type answer struct {
		Status       string
		Reason       *string
		FenceEpoch   *int32
		FenceCounter *int64
		LeftMS       *int64
		RemainingMS  *int64
	}
	got, err := database.Change[answer](ctx, a.pool, query, pgx.NamedArgs{
		"report": report, "lease": id, "ttl_ms": ttl.Milliseconds(),
	})
	if err == nil && got.Status == "renewed" {
		return Renewal{
			Fence:     fencing.Joined(got.FenceEpoch, got.FenceCounter),
			Left:      milliseconds(*got.LeftMS),
			Remaining: milliseconds(*got.RemainingMS),
		}, nil
	}
	if err == nil {
		err = endedOrUnknown(got.Status, got.Reason)
	}
	return Renewal{}, fmt.Errorf("renew lease %q of %q: %w", id, report, err)
}

// Release ends a lease, and tells whether it was this call that did. It never touches another lease, and an
// id that it does not know can never be granted afterwards. Errors: ErrLost (*LostError) where the lease
// has ended otherwise, database.ErrUnavailable.
func (a *Authority) Release(ctx context.Context, report fencing.ReportID, id fencing.LeaseID) (bool, error) {
	const query = `SELECT status, reason FROM release(@report, @lease)`
	type answer struct {
		Status string
		Reason *string
	}
	got, err := database.Change[answer](ctx, a.pool, query, pgx.NamedArgs{"report": report, "lease": id})
	if err == nil && (got.Status == "released" || got.Status == "already_released") {
		a.line.tell(report, id) // whoever still asks for it has lost it
		return got.Status == "released", nil
	}
	if err == nil {
		err = endedOrUnknown(got.Status, got.Reason)
	}
	return false, fmt.Errorf("release lease %q of %q: %w", id, report, err)
}

// Revocation bars a fence.
type Revocation struct {
	Report fencing.ReportID
	Fence  fencing.Fence // this one and all below it; zero is the highest granted
	Reason string        // for people
	By     string        // who asked
}

// Revoke bars a fence and all below it, in every mode, ends the lease that holds it, and returns the fence
// that it barred. A greater grant is untouched, so that naming the fence makes a repetition safe.
// Errors: fencing.ErrReportNotFound, fencing.ErrNotGranted, fencing.ErrFrozen, database.ErrUnavailable.
func (a *Authority) Revoke(ctx context.Context, r Revocation) (fencing.Fence, error) {
	const query = `
		SELECT status, fence_epoch, fence_counter, granted_epoch, granted_counter
		FROM revoke_lease(@report, nullif(@epoch::integer, 0), nullif(@counter::bigint, 0), @reason, @by)`
	type answer struct {
		Status         string
		FenceEpoch     *int32
		FenceCounter   *int64
		GrantedEpoch   *int32
		GrantedCounter *int64
	}
	got, err := database.Change[answer](ctx, a.pool, query, pgx.NamedArgs{
		"report": r.Report, "epoch": r.Fence.Epoch, "counter": r.Fence.Counter, "reason": r.Reason, "by": r.By,
	})
	barred := fencing.Joined(got.FenceEpoch, got.FenceCounter)
	if err == nil && got.Status == "revoked" {
		return barred, nil
	}
	if err == nil {
		verdict := fencing.Verdict{GrantedEpoch: got.GrantedEpoch, GrantedCounter: got.GrantedCounter}
		err = verdict.Err(got.Status, barred)
	}
	if err == nil {
		err = endedOrUnknown(got.Status, nil)
	}
	return fencing.Fence{}, fmt.Errorf("revoke the lease of %q: %w", r.Report, err)
}

// endedOrUnknown is the error of the statuses that several functions have in common.
func endedOrUnknown(status string, reason *string) error {
	switch status {
	case "lease_lost":
		return &LostError{Reason: *reason}
	case "lease_not_found":
		return ErrNotFound
	case "frozen":
		return fencing.ErrFrozen
	case "epoch_in_doubt":
		return database.ErrEpochInDoubt
	default:
		return fmt.Errorf("unexpected status %q", status)
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
