package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// State is how a lease stands.
type State string

// The states of a lease.
const (
	Live  State = "live"
	Ended State = "ended"
)

// Lease is the record of a grant, or of an id that was released before it was ever granted.
type Lease struct {
	ID        fencing.LeaseID
	State     State
	Holder    string        // empty for an id that was never granted
	Fence     fencing.Fence // zero for an id that was never granted
	TTL       time.Duration // as asked for at the grant
	GrantedAt *time.Time
	Remaining time.Duration // zero unless live
	EndedAt   *time.Time    // nil while live; for an expiry that nobody has noted yet, when it expired
	EndReason string        // empty while live
	CreatedAt time.Time     // by which the list is ordered
}

// leaseRow is a row of the history, judged by the database's clock.
type leaseRow struct {
	LeaseID      fencing.LeaseID
	Holder       *string
	TTLMS        *int64
	FenceEpoch   *int32
	FenceCounter *int64
	GrantedAt    *time.Time
	RemainingMS  *int64
	EndedAt      *time.Time
	EndReason    *string
	CreatedAt    time.Time
}

// selectLeases judges every lease as the functions would, without locking: what it tells may have
// changed by the time it is read.
const selectLeases = `
	SELECT l.lease_id, l.holder, l.ttl_ms, l.fence_epoch, l.fence_counter, l.granted_at, l.created_at,
	       CASE WHEN live THEN milliseconds_between(n.now, r.lease_expires_at) END AS remaining_ms,
	       CASE WHEN NOT live THEN coalesce(l.ended_at, CASE WHEN r.lease_id = l.lease_id
	           THEN least(r.lease_expires_at, CASE WHEN l.fence_epoch < e.floor_epoch THEN e.floor_at END) END) END AS ended_at,
	       CASE WHEN NOT live THEN lost_reason(l, r, e.floor_epoch) END AS end_reason
	FROM lease l
	JOIN report r USING (report_id)
	CROSS JOIN (SELECT fenceline_now() AS now OFFSET 0) n
	CROSS JOIN (
	    SELECT floor_epoch, (SELECT began_at FROM epoch f WHERE f.epoch = newest.floor_epoch) AS floor_at
	    FROM epoch newest
	    ORDER BY epoch DESC
	    LIMIT 1
	) e
	CROSS JOIN LATERAL (SELECT coalesce(r.lease_id = l.lease_id AND lease_is_live(r, e.floor_epoch, n.now), false) AS live) v
	WHERE l.report_id = @report`

// Lease tells how one lease stands. Errors: ErrNotFound, database.ErrUnavailable.
func (a *Authority) Lease(ctx context.Context, report fencing.ReportID, id fencing.LeaseID) (Lease, error) {
	const query = selectLeases + ` AND l.lease_id = @lease`
	row, found, err := database.Row[leaseRow](ctx, a.pool, query, pgx.NamedArgs{"report": report, "lease": id})
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return Lease{}, fmt.Errorf("read lease %q of %q: %w", id, report, err)
	}
	return row.lease(), nil
}

// Live tells the report's live lease. Errors: ErrNotFound where there is none, database.ErrUnavailable.
func (a *Authority) Live(ctx context.Context, report fencing.ReportID) (Lease, error) {
	const query = selectLeases + ` AND l.lease_id = r.lease_id AND live`
	row, found, err := database.Row[leaseRow](ctx, a.pool, query, pgx.NamedArgs{"report": report})
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return Lease{}, fmt.Errorf("read the live lease of %q: %w", report, err)
	}
	return row.lease(), nil
}

// After is where a page of leases goes on: after the lease with this time and id. The zero After is the
// beginning.
type After struct {
	CreatedAt time.Time
	ID        fencing.LeaseID
}

// Leases lists the leases of a report, newest first, at most limit of them. Errors:
// fencing.ErrReportNotFound, database.ErrUnavailable.
func (a *Authority) Leases(ctx context.Context, report fencing.ReportID, after After, limit int) ([]Lease, error) {
	const query = selectLeases + `
		AND (@first OR (l.created_at, l.lease_id) < (@created_at, @lease))
		ORDER BY l.created_at DESC, l.lease_id DESC
		LIMIT @limit`
	rows, err := database.Rows[leaseRow](ctx, a.pool, query, pgx.NamedArgs{
		"report": report, "first": after == After{}, "created_at": after.CreatedAt, "lease": after.ID, "limit": limit,
	})
	if err == nil && len(rows) == 0 {
		err = database.ReportExists(ctx, a.pool, report)
	}
	if err != nil {
		return nil, fmt.Errorf("list the leases of %q: %w", report, err)
	}
	leases := make([]Lease, len(rows))
	for i, row := range rows {
		leases[i] = row.lease()
	}
	return leases, nil
}

func (r leaseRow) lease() Lease {
	l := Lease{
		ID: r.LeaseID, State: Live, Fence: fencing.Joined(r.FenceEpoch, r.FenceCounter),
		GrantedAt: r.GrantedAt, EndedAt: r.EndedAt, CreatedAt: r.CreatedAt,
	}
	if r.Holder != nil {
		l.Holder, l.TTL = *r.Holder, milliseconds(*r.TTLMS)
	}
	if r.RemainingMS != nil {
		l.Remaining = milliseconds(*r.RemainingMS)
	}
	if r.EndReason != nil {
		l.State, l.EndReason = Ended, *r.EndReason
	}
	return l
}
