package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/check"
	"github.com/fenceline/fenceline/internal/fencing"
)

// settle repeats a request until the service has settled it, and returns how many attempts had an unknown
// outcome. An error that settles nothing means that the worker gave up.
func settle[T any](ctx context.Context, w *tormentWorker, do func() (T, error)) (value T, unknowns int, err error) {
	patient := w.chance(80)
	for until := time.Now().Add(30 * time.Second); ; {
		value, err = do()
		var failure *client.Error
		if err == nil || !errors.As(err, &failure) {
			return value, unknowns, err
		}
		if !expected(failure) {
			w.log.fault("%s was not prepared for: %v", w.name, err)
		}
		if failure.Outcome == client.Unknown {
			unknowns++
			w.log.count("attempts of unknown outcome")
		} else if settled(failure) {
			return value, unknowns, err
		}
		if unknowns > 0 && !patient || ctx.Err() != nil || time.Now().After(until) {
			return value, unknowns, err
		}
		_ = sleep(ctx, upTo(w.rng, 80*time.Millisecond)) // the next round looks at ctx
	}
}

// settled tells whether the service has decided, for good.
func settled(e *client.Error) bool {
	return e.Code != "" && e.Code != "unavailable" && e.Outcome == client.NotApplied
}

// expected tells whether an answer is one of those that may come, where every request makes sense and everything
// else may be killed at any moment.
func expected(e *client.Error) bool {
	switch e.Code {
	case "", "unavailable", "busy", "lease_lost", "stale_fence", "version_conflict", "expected_version_required",
		"object_gone", "object_not_found", "object_exists": // the last: reserved, and condemned before the repetition
		return e.Status != 500
	}
	return false
}

// final are the refusals after which no earlier attempt can be applied any more: what they found stays so.
func final(code string) bool {
	switch code {
	case "stale_fence", "version_conflict", "expected_version_required", "object_gone", "object_mismatch":
		return true
	}
	return false
}

// publish publishes under a new key until it knows what has become of it, and writes it down.
func (w *tormentWorker) publish(ctx context.Context, l *client.Capability, r client.PublishRequest) (version int64, err error) {
	r.IdempotencyKey = fmt.Sprintf("%s-%d-%s%d", w.name, w.session, r.ObjectID, r.FromVersion)
	record := check.Publish{Report: fencing.ReportID(l.Report()), Key: r.IdempotencyKey, Fence: fencing.Fence(l.Fence())}
	record.SentAt = time.Now()
	w.log.beginsToPublish()
	got, unknowns, err := settle(ctx, w, func() (*client.Publication, error) { return l.Publish(ctx, r) })
	record.AnsweredAt, record.Unknowns = time.Now(), unknowns

	var failure *client.Error
	switch {
	case err == nil:
		record.Outcome, record.Version = check.Outcome(got.Result), got.Version
		if got.Object != nil {
			record.SHA256 = got.Object.SHA256
		}
		version = got.Version
		w.countApplied(r)
		w.log.supersede(l.Report(), version)
	case errors.As(err, &failure) && settled(failure) && (unknowns == 0 || final(failure.Code)):
		record.Outcome, record.Code = check.Refused, failure.Code
		w.log.count("refused: " + failure.Code)
	default:
		record.Outcome = check.Unsettled
	}
	if unknowns > 0 {
		w.log.count("unknown, then " + string(record.Outcome))
	}
	w.log.publish(record)
	if err == nil && w.chance(15) {
		w.repeat(ctx, l, r, version)
	}
	return version, err
}

func (w *tormentWorker) countApplied(r client.PublishRequest) {
	w.log.count("applied")
	switch {
	case r.Withdraw:
		w.log.count("withdrawals")
	case r.FromVersion > 0:
		w.log.count("roll-backs")
	}
}

// repeat sends what was applied once more, perhaps much later: it must be a duplicate, however stale the fence.
func (w *tormentWorker) repeat(ctx context.Context, l *client.Capability, r client.PublishRequest, version int64) {
	if w.chance(50) {
		if sleep(ctx, tormentTTL+upTo(w.rng, time.Second)) != nil {
			return
		}
	}
	got, err := l.Publish(ctx, r)
	switch {
	case err == nil && got.Result == client.Duplicate && got.Version == version:
		w.log.count("repeated")
	case err == nil:
		w.log.fault("the key %s made version %d, and repeated it is %s as version %d", r.IdempotencyKey, version, got.Result, got.Version)
	case errors.Is(err, client.ErrUnavailable) || ctx.Err() != nil:
	default:
		w.log.fault("the key %s made version %d, and repeated it is refused: %v", r.IdempotencyKey, version, err)
	}
}
