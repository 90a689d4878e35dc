package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// persist makes attempts until one succeeds, fails for good, or they are used up. Once
// the outcome of an attempt was unknown, it stays so until an answer settles it: that a
// later attempt was not applied says nothing about the earlier one.
func (c *Client) persist(ctx context.Context, request call, attempt func(context.Context) *Error) error {
	unknown := false
	for n := 1; ; n++ {
		failure := attempt(ctx)
		if failure == nil {
			return nil
		}
		failure.Attempts = n
		if unknown && !settles(failure) {
			failure.Outcome = Unknown
		}
		unknown = failure.Outcome == Unknown
		wait := max(c.backoff(n), failure.RetryAfter)
		if n >= c.config.MaxAttempts || wait > c.config.MaxBackoff || !repeatable(failure) || !pause(ctx, wait) {
			return failure
		}
	}
}

// backoff is how long to wait after the nth attempt: doubling, and between half of it
// and all of it by chance, so that clients which failed together do not return together.
func (c *Client) backoff(n int) time.Duration {
	wait := min(c.config.Backoff<<min(n-1, 20), c.config.MaxBackoff)
	return wait/2 + rand.N(wait/2+1)
}

// pause waits, and tells whether there is a point in going on. There is none if ctx ends
// before the wait does.
func pause(ctx context.Context, wait time.Duration) bool {
	if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// repeatable tells whether the same request may fare better a little later.
func repeatable(e *Error) bool {
	switch {
	case e.final:
		return false
	case e.Status == 0:
		return true
	case e.Code == "":
		// 409 is how a storage answers two uploads of one key at the same moment.
		return e.Status == 409 || e.Status == 429 || e.Status >= 500
	}
	return e.Code == "unavailable" || e.Code == "rate_limited" || e.Outcome == Unknown
}

// settles tells whether a refusal also settles what became of an earlier attempt of the same request, which may
// still be on its way: what the service has found stays so, and would refuse that attempt too.
func settles(e *Error) bool {
	switch e.Code {
	case "stale_fence", "version_conflict", "expected_version_required", "grant_already_used", "idempotency_key_reused",
		"lease_lost", "lease_id_reused", "lease_not_live",
		"object_gone", "object_mismatch", "object_exists", "object_id_reused", "object_in_use":
		return e.Outcome != Unknown
	}
	return false
}
