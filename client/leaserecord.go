package client

import (
	"context"
	"net/http"
	"time"
)

// LeaseRecord is what the service has on record of a lease, live or ended.
type LeaseRecord struct {
	Report      string    `json:"report"`
	LeaseID     string    `json:"lease_id"`
	State       string    `json:"state"` // "live" or "ended"
	Holder      string    `json:"holder,omitzero"`
	Fence       *Fence    `json:"fence"` // nil for an id that was released before it was ever granted
	TTLMS       int64     `json:"ttl_ms,omitzero"`
	GrantedAt   time.Time `json:"granted_at,omitzero"`
	RemainingMS *int64    `json:"remaining_ms,omitzero"` // while it is live
	EndedAt     time.Time `json:"ended_at,omitzero"`
	Reason      string    `json:"reason,omitzero"` // once it has ended
}

// LiveLease reads who holds the lease of a report now. It fails with [ErrNotFound] where nobody does.
func (c *Client) LiveLease(ctx context.Context, report string) (*LeaseRecord, error) {
	return c.leaseRecord(ctx, opName("read", "the live lease", report), []string{"report", report}, "reports", report, "lease")
}

// Lease reads what is on record of one lease. It fails with [ErrNotFound] where the id is not known, or no longer.
func (c *Client) Lease(ctx context.Context, report, leaseID string) (*LeaseRecord, error) {
	return c.leaseRecord(ctx, opName("read", "lease "+leaseID, report), []string{"report", report, "lease", leaseID}, leasePath(report, leaseID)...)
}

func (c *Client) leaseRecord(ctx context.Context, op string, ids []string, path ...string) (*LeaseRecord, error) {
	if err := checkIDs(op, ids...); err != nil {
		return nil, err
	}
	got, _, err := exchange[LeaseRecord](ctx, c, call{op: op, method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return &got, nil
}
