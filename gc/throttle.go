package gc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fenceline/fenceline/staging"
)

const (
	// The first pause after the storage has asked for fewer requests, and the longest; each is twice the one before.
	firstPause   = time.Second
	longestPause = time.Minute

	// throttlePatience is how long a pass waits in all while nothing is let through, before it ends as failed.
	throttlePatience = 15 * time.Minute

	// easeAfter is how many requests in a row must be let through before they grow again.
	easeAfter = 10

	// lookEvery is how often a pass that waits looks whether it may go on.
	lookEvery = time.Second
)

// throttle is how a pass follows a storage that asks for fewer requests: it waits, and asks for less at a time.
type throttle struct {
	full    int           // how many objects a request may name at most
	size    int           // how many it may name now
	pause   time.Duration // the last one; 0 after a request that was let through
	waited  time.Duration // since a request was let through
	letPast int           // how many were let through in a row
}

// refused returns how long to wait before the next request, or that the storage has been waited for long enough.
func (t *throttle) refused(err error) (time.Duration, error) {
	if t.waited >= throttlePatience {
		return 0, fmt.Errorf("nothing was let through for %v: %w", throttlePatience, err)
	}
	t.size = max(t.size/2, 1)
	t.letPast = 0
	t.pause = min(max(2*t.pause, firstPause), longestPause)
	t.waited += t.pause
	// Up to half of it at random less, so that several who were refused together do not come back together.
	return t.pause - rand.N(t.pause/2), nil
}

// passed notes that something was let through.
func (t *throttle) passed() { t.waited = 0 }

// eased notes that a whole request was let through.
func (t *throttle) eased() {
	t.waited, t.pause = 0, 0
	if t.letPast++; t.letPast >= easeAfter && t.size < t.full {
		t.size, t.letPast = min(2*t.size, t.full), 0
	}
}

// patiently does what asks the storage until it is not throttled. Whatever keeps the pass from going on meanwhile ends it,
// also in the middle of a pause.
func (p *Pass) patiently(ctx context.Context, mayGoOn func(context.Context) error, ask func() error) error {
	for {
		err := ask()
		if !errors.Is(err, staging.ErrThrottled) {
			if err == nil {
				p.throttle.eased()
			}
			return err
		}
		if err := p.backOff(ctx, mayGoOn, err); err != nil {
			return err
		}
	}
}

// backOff waits as long as the throttling asks for.
func (p *Pass) backOff(ctx context.Context, mayGoOn func(context.Context) error, refusal error) error {
	pause, err := p.throttle.refused(refusal)
	if err != nil {
		return err
	}
	p.collector.log.InfoContext(ctx, "the storage asks the collector for fewer requests", "run", p.ID,
		"pause", pause, "objects_a_request", p.throttle.size)
	for pause > 0 {
		some := min(pause, lookEvery)
		if err := p.collector.cfg.wait(ctx, some); err != nil {
			return err
		}
		if err := mayGoOn(ctx); err != nil {
			return err
		}
		pause -= some
	}
	return nil
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
