package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// AcquireRequest asks for a lease.
type AcquireRequest struct {
	Report  string        // the report to work on
	LeaseID string        // chosen by the caller, new for each grant; "" makes a random one
	Holder  string        // who asks, for people to read: 1–200 characters
	TTL     time.Duration // how long the lease lasts, from 1 s
	Wait    time.Duration // how long to wait for another's lease to end; 0: not at all
}

// Lease is a grant as it was answered to one request. It does not change: a renewal
// makes a new one.
type Lease struct {
	Report    string
	ID        string
	Holder    string
	Fence     Fence
	Remaining time.Duration // of its life, when the service answered
	Waited    time.Duration // by the service, before it looked at the clock
	Version   int64         // the report's version at the grant; 0 if none, or of a renewal
	Replayed  bool          // the id held the lease already

	sentAt instant
	margin time.Duration
	now    func() instant
}

// Left is how much longer the holder may count on the lease: from the *sending* of the
// request, the time that the service waited and what remained then, less the client's
// margin, by a clock that counts suspend where there is one. It is zero or less once
// the lease must be taken for lost.
func (l *Lease) Left() time.Duration {
	if l.now == nil {
		return 0 // not from an answer
	}
	return l.Waited + l.Remaining - l.margin - l.now().since(l.sentAt)
}

// Valid tells whether anything of the lease is left, see [Lease.Left].
func (l *Lease) Valid() bool { return l.Left() > 0 }

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

// MarshalJSON writes the lease in the form of the service's answers.
func (l *Lease) MarshalJSON() ([]byte, error) {
	return json.Marshal(leaseOnWire{
		Report: l.Report, LeaseID: l.ID, Holder: l.Holder, Fence: l.Fence,
		RemainingMS: l.Remaining.Milliseconds(), WaitedMS: l.Waited.Milliseconds(),
		Version: l.Version, Replayed: l.Replayed,
	})
}

// lease makes a Lease of an answer and the time at which its request was sent.
func (c *Client) lease(got leaseOnWire, sentAt instant) *Lease {
	return &Lease{
		Report: got.Report, ID: got.LeaseID, Holder: got.Holder, Fence: got.Fence,
		Remaining: time.Duration(got.RemainingMS) * time.Millisecond,
		Waited:    time.Duration(got.WaitedMS) * time.Millisecond,
		Version:   got.Version, Replayed: got.Replayed,
		sentAt: sentAt, margin: c.config.Margin, now: c.now,
	}
}

// Acquire asks for a lease. The same id, holder and ttl may be sent again: while the id
// holds the lease it gets the same fence, and the lease is not extended. It fails with
// [ErrBusy] while another lease is live, and with [ErrLeaseLost] where the id has ended.
func (c *Client) Acquire(ctx context.Context, r AcquireRequest) (*Lease, error) {
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
	return c.lease(got, answered.sentAt), nil
}

// Renew extends a lease to ttl from now, or with ttl 0 by the ttl it was acquired with;
// it never shortens one. The fence stays. It fails with [ErrLeaseLost] once the lease
// has ended, and lost stays lost.
func (c *Client) Renew(ctx context.Context, report, leaseID string, ttl time.Duration) (*Lease, error) {
	op := opName("renew", "the lease", report)
	if err := checkIDs(op, "report", report, "lease", leaseID); err != nil {
		return nil, err
	}
	got, answered, err := exchange[leaseOnWire](ctx, c, call{
		op: op, method: http.MethodPost, path: append(leasePath(report, leaseID), "renew"), mutating: true,
		body: struct {
			TTLMS int64 `json:"ttl_ms,omitzero"`
		}{ttl.Milliseconds()},
	})
	if err != nil {
		return nil, err
	}
	got.Report, got.LeaseID = report, leaseID
	return c.lease(got, answered.sentAt), nil
}

// Release ends a lease before its time, so that the next worker need not wait. It does
// nothing if the lease was released before, and fails with [ErrLeaseLost] if it ended
// otherwise. It never touches another's lease.
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

func leasePath(report, leaseID string) []string {
	return []string{"reports", report, "leases", leaseID}
}
