// Package crowd lets a crowd of workers wait for one lease, over HTTP, at one or several instances of the service, and
// tells how long each waited, what a hand-over cost the database, and what was left behind.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fenceline/fenceline/internal/service"
)

// Config says how large a crowd to let wait, and where. The database must be migrated and hold no reports.
type Config struct {
	Service  service.Config // of each instance; it listens where there is room
	OwnerURL string         // of the database, to look at it past the service

	Waiters  int           // how many wait; the first comes once another holds the lease
	Replicas int           // at how many instances, in turn; 0 is one
	Hold     time.Duration // how long each holds the lease
	Leavers  int           // how many of them go away while they wait
}

const (
	report  = "crowded"
	holder  = "holder"
	longest = time.Minute // that the service lets anybody wait
	ttl     = 30 * time.Second

	// leaverTTL is short, so that what is granted to a client that has just gone does not hold up the others for long.
	leaverTTL = time.Second
	// lateLeaver is which leaver goes at the moment when its turn comes, and not before the first hand-over: in turn one
	// that is granted the lease and is not heard of again, and one that goes while it may be granted it.
	lateLeaver = 50
)

// runs counts them, so that each tells its goroutines from those of the others.
var runs atomic.Int64

// Run lets the crowd wait, serves it, and looks at what is left. What did not go as it must is in the result; an error
// is that of an experiment that could not be made.
func Run(ctx context.Context, cfg Config) (result Result, err error) {
	cfg.Replicas = max(cfg.Replicas, 1)
	label := "crowd " + strconv.FormatInt(runs.Add(1), 10)
	// Goroutines inherit the label of the one that starts them.
	pprof.Do(ctx, pprof.Labels(labelName, label), func(ctx context.Context) {
		result, err = run(ctx, cfg, label)
	})
	return result, err
}

func run(ctx context.Context, cfg Config, label string) (result Result, err error) {
	look, err := openEye(ctx, cfg.OwnerURL, label)
	if err != nil {
		return result, err
	}
	defer look.close()
	replicas, err := startReplicas(ctx, cfg)
	defer func() { err = errors.Join(err, stopAll(replicas)) }()
	if err != nil {
		return result, err
	}
	before, err := look.leftovers(ctx, replicas)
	if err != nil {
		return result, err
	}
	c := &crowd{Config: cfg, replicas: replicas}
	if err := c.gather(ctx); err != nil {
		return result, err
	}
	started, counted := time.Now(), statements(replicas)
	if err := c.serve(ctx); err != nil {
		return result, err
	}
	took, sent := time.Since(started), statements(replicas)-counted
	after, err := look.settled(ctx, replicas, before)
	if err != nil {
		return result, err
	}
	granted, err := look.granted(ctx)
	if err != nil {
		return result, err
	}
	return c.judge(took, sent, granted, before, after), nil
}

// crowd is one that waits.
type crowd struct {
	Config
	replicas []*replica
	waiters  []*waiter
	all      sync.WaitGroup
}

// gather has one take the lease, and then all others wait for it, each after the one before it.
func (c *crowd) gather(ctx context.Context) error {
	if _, err := c.replicas[0].client.Acquire(ctx, asking(holder, ttl, 0)); err != nil {
		return fmt.Errorf("hold the lease: %w", err)
	}
	c.invite(ctx)
	for _, w := range c.waiters {
		before := w.replica.service.Leases.Waiting()
		c.all.Go(w.live)
		if err := until(ctx, func() bool { return w.replica.service.Leases.Waiting() > before }); err != nil {
			return fmt.Errorf("waiter %d does not come into the line: %w", w.number, err)
		}
	}
	staying := 0
	for _, w := range c.waiters {
		if w.leaves && !w.late {
			w.leave()
		} else {
			staying++
		}
	}
	if err := until(ctx, func() bool { return waitingAt(c.replicas) == staying }); err != nil {
		return fmt.Errorf("%d wait, where %d should: %w", waitingAt(c.replicas), staying, err)
	}
	return nil
}

// invite makes the waiters, who do nothing yet, and spreads those who will leave evenly among them.
func (c *crowd) invite(ctx context.Context) {
	leavers := 0
	for n := range c.Waiters {
		w := &waiter{crowd: c, number: n, replica: c.replicas[n%c.Replicas], ttl: ttl}
		if (n+1)*c.Leavers/c.Waiters > leavers {
			leavers++
			w.leaves, w.ttl = true, leaverTTL
			w.late = leavers%lateLeaver == 0
			w.dies = leavers%(2*lateLeaver) == lateLeaver
		}
		waiting, leave := context.WithCancel(ctx)
		w.leave = leave
		w.live = func() { w.wait(waiting) }
		c.waiters = append(c.waiters, w)
	}
}

// serve lets the lease go from hand to hand until everybody has had it, or is gone. Then one more takes it and gives it
// back, behind whatever was granted to those who went.
func (c *crowd) serve(ctx context.Context) error {
	first := c.replicas[0].client
	if err := first.Release(ctx, report, holder); err != nil {
		return fmt.Errorf("let the first go on: %w", err)
	}
	c.all.Wait()
	if _, err := first.Acquire(ctx, asking("last", ttl, longest)); err != nil {
		return fmt.Errorf("acquire behind all others: %w", err)
	}
	if err := first.Release(ctx, report, "last"); err != nil {
		return fmt.Errorf("release the last lease: %w", err)
	}
	return ctx.Err()
}

// patience is how long the experiment waits for what must come to pass.
const patience = 30 * time.Second

// until returns when the condition holds.
func until(ctx context.Context, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
