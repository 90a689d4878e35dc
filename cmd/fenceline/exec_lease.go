package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fenceline/fenceline/client"
)

// longestWait is how long one request may ask the service to wait.
const longestWait = time.Minute

// acquire waits for the lease. A signal that asks to end ends the wait, and no lease is left then.
func (c *execCmd) acquire(ctx context.Context, service *client.Client, signals <-chan os.Signal) (*client.Capability, error) {
	request := client.AcquireRequest{Report: c.Report, LeaseID: rand.Text(), Holder: c.Holder, TTL: c.TTL}
	if request.Holder == "" {
		request.Holder = defaultHolder()
	}
	asking, stop := interruptible(ctx, signals, "waiting for the lease")
	lease, err := c.await(asking, service, request)
	stop()
	interrupted, ok := interruptionOf(asking)
	if !ok {
		return lease, err
	}
	// Granted or still on its way: an id that was released is never granted.
	return nil, exitError{interrupted.code(), errors.Join(interrupted, giveUp(ctx, service, request))}
}

// await asks for the lease until it is granted or the wait is over.
func (c *execCmd) await(ctx context.Context, service *client.Client, request client.AcquireRequest) (*client.Capability, error) {
	deadline := time.Now().Add(c.Wait)
	for {
		request.Wait = min(max(0, time.Until(deadline)), longestWait).Truncate(time.Millisecond)
		lease, err := service.Acquire(ctx, request)
		if err == nil || !errors.Is(err, client.ErrBusy) || request.Wait < longestWait {
			return lease, err
		}
	}
}

// giveUp ends a lease that may have been granted.
func giveUp(ctx context.Context, service *client.Client, request client.AcquireRequest) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := service.Release(ctx, request.Report, request.LeaseID); err != nil {
		return fmt.Errorf("if the lease was granted it runs out by itself: %w", err)
	}
	return nil
}

// release ends the lease, if there is anything left of it to end.
func (c *execCmd) release(ctx context.Context, lease *client.Capability, out *console) {
	if !lease.Valid() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := lease.Release(ctx); err != nil && !errors.Is(err, client.ErrLeaseLost) {
		fmt.Fprintf(out.Err, "fenceline: the lease runs out by itself: %s\n", oneLine(err))
	}
}
