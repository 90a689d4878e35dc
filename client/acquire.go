package client

import (
	"context"
	"net/http"
	"time"
)

// AcquireRequest asks for a lease.
type AcquireRequest struct {
	Report  string        // the report to work on
	LeaseID string        // chosen by the caller, new for each grant; "" makes a random one
	Holder  string        // who asks, for people to read: 1–200 characters
	TTL     time.Duration // how long the lease lasts without renewal, from 1 s
	Wait    time.Duration // how long to wait for another's lease to end; 0: not at all
}

// leaseOnWire is a lease as the service writes it.
type leaseOnWire struct {
	Report      string `json:"report,omitzero"`
	LeaseID     string `json:"lease_id,omitzero"`
	Holder      string `json:"holder,omitzero"`
	Fence       Fence  `json:"fence"`
	RemainingMS int64  `json:"remaining_ms"`
	WaitedMS    int64  `json:"waited_ms"`
	Version     int64  `json:"version"`
	Replayed    bool   `json:"replayed,omitzero"`
}

// Acquire asks for a lease. ctx bounds the asking alone: the capability outlives it, until
// it is released or lost. The same id, holder and ttl may be sent again: while the id
// holds the lease it gets the same fence, and the lease is not extended. It fails with
// [ErrBusy] while another lease is live, and with [ErrLeaseLost] where the id has ended.
//
// Nothing renews the lease until [Capability.Keep] or [Capability.Renew] is called;
// [Client.Hold] does all of it.
func (c *Client) Acquire(ctx context.Context, r AcquireRequest) (*Capability, error) {
	op := opName("acquire", "a lease", r.Report)
	if r.LeaseID == "" {
		r.LeaseID = newID()
	}
	if err := checkIDs(op, "report", r.Report, "lease", r.LeaseID); err != nil {
		return nil, err
	}
	got, answered, err := exchange[leaseOnWire](ctx, c, call{
		op: op, method: http.MethodPut, path: leasePath(r.Report, r.LeaseID), mutating: true, waits: r.Wait,
		body: struct {
			Holder string `json:"holder"`
			TTLMS  int64  `json:"ttl_ms"`
			WaitMS int64  `json:"wait_ms"`
		}{r.Holder, r.TTL.Milliseconds(), r.Wait.Milliseconds()},
	})
	if err != nil {
		return nil, err
	}
	got.Report, got.LeaseID, got.Holder = r.Report, r.LeaseID, r.Holder
	return c.capability(ctx, got, r.TTL, answered.sentAt), nil
}

// Resume takes over a lease that was acquired elsewhere, such as by another process, by
// renewing it: to ttl from now, or with ttl 0 by the ttl it was acquired with. Whoever
// acquired it shares it from then on, fence and all. The capability names no holder and
// no version. It fails with [ErrLeaseLost] once the lease has ended.
func (c *Client) Resume(ctx context.Context, report, leaseID string, ttl time.Duration) (*Capability, error) {
	got, answered, err := c.renew(ctx, report, leaseID, ttl, 0)
	if err != nil {
		return nil, err
	}
	got.Report, got.LeaseID = report, leaseID
	if ttl == 0 {
		ttl = milliseconds(got.RemainingMS)
	}
	return c.capability(ctx, got, ttl, answered.sentAt), nil
}

// Release ends a lease by its id, so that the next worker need not wait. An id that was
// never seen is barred from being granted. It does nothing if the lease was released
// before, and fails with [ErrLeaseLost] if it ended otherwise. It never touches another's
// lease. Who has a [Capability] calls its Release.
func (c *Client) Release(ctx context.Context, report, leaseID string) error {
	op := opName("release", "the lease", report)
	if err := checkIDs(op, "report", report, "lease", leaseID); err != nil {
		return err
	}
	_, _, err := exchange[struct{}](ctx, c, call{
		op: op, method: http.MethodDelete, path: leasePath(report, leaseID), mutating: true,
	})
	return err
}

// renew extends a lease; it never shortens one. With a patience above zero no attempt
// lasts longer than that.
func (c *Client) renew(ctx context.Context, report, leaseID string, ttl, patience time.Duration) (leaseOnWire, answer, error) {
	op := opName("renew", "the lease", report)
	if err := checkIDs(op, "report", report, "lease", leaseID); err != nil {
		return leaseOnWire{}, answer{}, err
	}
	return exchange[leaseOnWire](ctx, c, call{
		op: op, method: http.MethodPost, path: append(leasePath(report, leaseID), "renew"), mutating: true,
		patience: patience,
		body: struct {
			TTLMS int64 `json:"ttl_ms,omitzero"`
		}{ttl.Milliseconds()},
	})
}

func leasePath(report, leaseID string) []string {
	return []string{"reports", report, "leases", leaseID}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
