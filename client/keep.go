package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Renew extends the lease by the ttl it was acquired with. The fence stays. Only an
// acknowledged renewal moves the deadline, and never back. Once the capability is over it
// fails with [ErrLeaseLost], whatever the service would say.
func (k *Capability) Renew(ctx context.Context) error {
	if err := k.over(); err != nil {
		return err
	}
	// A renewal that hangs is of no use past the deadline.
	ctx, stop := endWith(ctx, k.context)
	defer stop()
	// Nor one attempt for the whole time in which another might be answered.
	got, answered, err := k.client.renew(ctx, k.granted.Report, k.granted.LeaseID, 0, k.ttl/3)
	if err == nil && got.Fence != k.granted.Fence {
		err = fmt.Errorf("renew the lease of report %q: the answer is about fence %s, not %s", k.granted.Report, got.Fence, k.granted.Fence)
	}
	if err != nil {
		err = k.judge(err)
	}
	return k.acknowledge(got, answered.sentAt, err)
}

// acknowledge moves the deadline by what a renewal was answered, unless that came too late.
func (k *Capability) acknowledge(got leaseOnWire, sentAt instant, failure error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left()
	if k.lost != nil {
		return k.lost
	}
	k.failure = failure
	if failure != nil {
		return failure
	}
	k.deadline = latest(k.deadline, k.deadlineOf(got, sentAt))
	k.renewed = latest(k.renewed, sentAt)
	return nil
}

// Keep renews the lease, a little before each third of its ttl, until ctx ends or the
// capability is over. What fails for the moment is tried again sooner, and never past the
// deadline. It returns nil where ctx ended or the lease was released, and otherwise why
// the capability is over, see [Capability.Context].
func (k *Capability) Keep(ctx context.Context) error {
	next := k.untilRenewal()
	for {
		if !k.pause(ctx, next) {
			return k.whyNotKept(ctx)
		}
		err := k.Renew(ctx)
		switch {
		case err == nil:
			next = k.untilRenewal()
		case errors.Is(err, ErrLeaseLost), ctx.Err() != nil:
			return k.whyNotKept(ctx)
		default:
			next = jittered(min(k.client.config.MaxBackoff, k.ttl/10))
		}
	}
}

// whyNotKept is what Keep returns.
func (k *Capability) whyNotKept(ctx context.Context) error {
	if err := k.over(); err != nil && !errors.Is(err, errReleased) {
		return err
	}
	return nil
}

// untilRenewal is how long to wait for the next renewal: from the sending of the last
// acknowledged request at most a third of the ttl, and less by chance, so that workers
// which began together do not renew together.
func (k *Capability) untilRenewal() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	third := k.ttl / 3
	due := k.renewed.plus(third - rand.N(third/10+1))
	return max(0, k.client.now().until(due))
}

// pause waits, and tells whether there is a point in going on.
func (k *Capability) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-k.context.Done():
	case <-ctx.Done():
	}
	return false
}

// errReleased is the reason of a capability that its holder gave up.
var errReleased = fmt.Errorf("%w: it was released", ErrLeaseLost)

// Release gives the capability up, at once, and ends the lease, so that the next worker
// need not wait. It does nothing if the lease was released before, and fails with
// [ErrLeaseLost] if it ended otherwise: it never touches another's lease. If the service
// cannot be asked, the lease runs out by itself.
func (k *Capability) Release(ctx context.Context) error {
	k.mu.Lock()
	k.lose(errReleased)
	k.mu.Unlock()
	return k.client.Release(ctx, k.granted.Report, k.granted.LeaseID)
}

// jittered is d, less up to half of it by chance.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// endWith is ctx, ended also with other and then for its cause.
func endWith(ctx, other context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		detach()
		cancel(nil)
	}
}
