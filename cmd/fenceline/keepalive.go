package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/client"
)

// keepAlive renews a lease at a third of its ttl until stop is called. The context that
// it returns ends, with [client.ErrLeaseLost] as its cause, once the lease is lost or,
// by this machine's clock, must be taken for lost.
func keepAlive(ctx context.Context, service *client.Client, lease *client.Lease, ttl time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lease.Valid() {
			if !wait(ctx, min(ttl/3, lease.Left())) {
				return
			}
			renewed, err := renewWithin(ctx, service, lease)
			if errors.Is(err, client.ErrLeaseLost) {
				cancel(err)
				return
			}
			if err == nil {
				lease = renewed
			}
		}
		cancel(fmt.Errorf("%w: it could not be renewed in time", client.ErrLeaseLost))
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// renewWithin renews a lease, and gives up when nothing is left of it.
func renewWithin(ctx context.Context, service *client.Client, lease *client.Lease) (*client.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, lease.Left())
	defer cancel()
	return service.Renew(ctx, lease.Report, lease.ID, 0)
}

// wait waits, and tells whether it did so to the end.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
