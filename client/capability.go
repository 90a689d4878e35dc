package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Capability is what a grant allows: to stage objects of one report and to publish them,
// under the fence of the grant. It is handed on explicitly, as an argument; whoever has
// none cannot publish. Several goroutines may use it at once.
//
// It is over once it was released, once the service has said that the lease or the fence
// is, or once its deadline passes without an acknowledged renewal. Over stays over,
// whatever is answered later. The deadline is the sending of the last acknowledged
// request, the time that the service waited and what remained then, less
// [Config.Margin], by a clock that counts suspend where there is one.
type Capability struct {
	client  *Client
	granted leaseOnWire
	ttl     time.Duration
	context context.Context // ends with the capability
	end     context.CancelCauseFunc

	mu       sync.Mutex
	deadline instant // moves only forward
	renewed  instant // when the last acknowledged request was sent
	watch    *time.Timer
	lost     error                // why it is over; nil while it is not
	failure  error                // of the last renewal, if it was not acknowledged
	version  int64                // of its own last publish; 0 before
	staged   map[string]*staged   // by object id
	sent     map[string]requested // publishes by their idempotency keys
}

// watchEvery is how often the deadline is looked at: timers stand still while the machine
// is suspended, so one that runs to the deadline would end too late.
const watchEvery = time.Second

// capability makes a Capability of an answer and the time at which its request was sent.
func (c *Client) capability(ctx context.Context, got leaseOnWire, ttl time.Duration, sentAt instant) *Capability {
	k := &Capability{
		client: c, granted: got, ttl: ttl, renewed: sentAt,
		staged: map[string]*staged{}, sent: map[string]requested{},
	}
	k.context, k.end = context.WithCancelCause(context.WithoutCancel(ctx))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deadline = k.deadlineOf(got, sentAt)
	k.watch = time.AfterFunc(min(max(0, k.left()), watchEvery), k.look)
	return k
}

// deadlineOf is until when an answer allows to work.
func (k *Capability) deadlineOf(got leaseOnWire, sentAt instant) instant {
	return sentAt.plus(milliseconds(got.WaitedMS) + milliseconds(got.RemainingMS) - k.client.config.Margin)
}

// Report is the report that is leased.
func (k *Capability) Report() string { return k.granted.Report }

// LeaseID names the lease.
func (k *Capability) LeaseID() string { return k.granted.LeaseID }

// Holder is who holds the lease, for people to read; "" after [Client.Resume].
func (k *Capability) Holder() string { return k.granted.Holder }

// Fence is the fence of the grant.
func (k *Capability) Fence() Fence { return k.granted.Fence }

// Version is the report's version at the grant, 0 if there was none; and 0 after
// [Client.Resume].
func (k *Capability) Version() int64 { return k.granted.Version }

// Replayed tells whether the lease id held the lease already when it was acquired.
func (k *Capability) Replayed() bool { return k.granted.Replayed }

// Left is how much longer the holder may work, see [Capability]; zero once it is over.
func (k *Capability) Left() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.left()
}

// left is Left under the lock. It ends the capability whose deadline has passed: so no
// answer that comes between looking and ending revives it.
func (k *Capability) left() time.Duration {
	if k.lost != nil {
		return 0
	}
	left := k.client.now().until(k.deadline)
	if left > 0 {
		return left
	}
	why := fmt.Errorf("%w: its deadline passed without an acknowledged renewal", ErrLeaseLost)
	if k.failure != nil {
		why = fmt.Errorf("%w; the last one failed: %w", why, k.failure)
	}
	k.lose(why)
	return 0
}

// Valid tells whether the capability is not over yet.
func (k *Capability) Valid() bool { return k.Left() > 0 }

// Enough is nil if at least d is left, and otherwise an error that says how much is. Ask
// before work that is expensive, or that nothing fences, such as sending a message.
func (k *Capability) Enough(d time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.left()
	switch {
	case k.lost != nil:
		return k.lost
	case left < d:
		return fmt.Errorf("the lease of report %q has %v left, which is less than %v", k.granted.Report, left.Round(time.Millisecond), d)
	}
	return nil
}

// Context ends when the capability is over. Its cause then matches [ErrLeaseLost] and
// says why: the deadline, the service's answer with its reason, or that it was released.
// It carries the values of the context with which the lease was acquired.
func (k *Capability) Context() context.Context { return k.context }

// MarshalJSON writes the grant in the form of the service's answers.
func (k *Capability) MarshalJSON() ([]byte, error) { return json.Marshal(k.granted) }

// look ends the capability at its deadline, however little anybody asks for it.
func (k *Capability) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left := k.left(); left > 0 {
		k.watch.Reset(min(left, watchEvery))
	}
}

// over is why the capability is over, or nil.
func (k *Capability) over() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left()
	return k.lost
}

// lose ends the capability, under the lock. The first reason stays.
func (k *Capability) lose(why error) {
	if k.lost != nil {
		return
	}
	k.lost = why
	if k.watch != nil {
		k.watch.Stop()
	}
	k.end(why)
}

// judge ends the capability if an error of the service says that its lease or its fence
// no longer counts, and returns the error.
func (k *Capability) judge(err error) error {
	var answered *Error
	if !errors.As(err, &answered) || answered.Code == "" {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, ErrLeaseLost):
		k.lose(err)
	case errors.Is(err, ErrStaleFence), answered.Code == "lease_not_found":
		k.lose(fmt.Errorf("%w: %w", ErrLeaseLost, err))
	}
	return err
}
