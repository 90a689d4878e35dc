package gc

import (
	"context"
	"errors"
	"slices"

	"github.com/fenceline/fenceline/staging"
)

// deleteBytes asks the storage to delete the bytes of a batch, in requests as large as it and the pace allow, and has each
// answer recorded. What is throttled is asked for again until it is answered. It is the one way in which bytes are deleted.
func (p *Pass) deleteBytes(ctx context.Context, batch []*doomed, record func(context.Context, []*doomed) error) error {
	for len(batch) > 0 {
		some := batch[:min(len(batch), p.throttle.size)]
		if err := p.collector.cfg.pace.WaitN(ctx, len(some)); err != nil {
			return err
		}
		answered, throttled, err := p.deleteSome(ctx, some)
		if err != nil && !errors.Is(err, staging.ErrThrottled) {
			return err
		}
		if err := record(ctx, answered); err != nil {
			return err
		}
		batch = append(throttled, batch[len(some):]...)
		if len(answered) > 0 {
			p.throttle.passed()
		}
		if len(throttled) == 0 {
			p.throttle.eased()
		} else if err := p.backOff(ctx, p.mayDelete(batch), err); err != nil {
			return err
		}
	}
	return nil
}

// deleteSome sends one request, and parts the objects that were answered from those that were throttled, for which err
// says how. After the request was signed, and before it is sent, the database's identity and the pass itself are looked at
// once more: if this process is paused after that, the storage refuses the aged signature.
func (p *Pass) deleteSome(ctx context.Context, some []*doomed) (answered, throttled []*doomed, err error) {
	refs := make([]staging.ObjectRef, len(some))
	for i, d := range some {
		refs[i] = staging.ObjectRef{Key: d.Key}
		if d.VersionID != nil {
			refs[i].VersionID = *d.VersionID
		}
	}
	results, err := p.collector.bucket.Delete(ctx, refs, p.mayDelete(some))
	if errors.Is(err, staging.ErrThrottled) {
		return nil, slices.Clone(some), err
	}
	if err != nil {
		return nil, nil, err
	}
	var throttling error
	for i, r := range results {
		d, err := some[i], r.Err
		if err == nil && r.Hidden {
			err = p.deleteVersions(ctx, d)
		}
		switch {
		case errors.Is(err, staging.ErrThrottled):
			throttled, throttling = append(throttled, d), err
			continue
		case stops(err):
			return nil, nil, err
		case err != nil:
			d.failed(err)
		}
		answered = append(answered, d)
	}
	return answered, throttled, throttling
}

// haltError is why a pass may not go on, as mayDelete has found out; through whatever it comes back.
type haltError struct{ error }

// Unwrap returns why.
func (e *haltError) Unwrap() error { return e.error }

// stops tells what keeps the whole pass from going on from what is the matter with one object.
func stops(err error) bool {
	_, halted := errors.AsType[*haltError](err)
	return halted || errors.Is(err, context.Canceled)
}

// deleteVersions deletes what a versioned bucket keeps of an object's key behind its delete marker. Where the storage
// shows them only in part, the rest is there to see once these are deleted.
func (p *Pass) deleteVersions(ctx context.Context, d *doomed) error {
	for {
		versions, err := p.collector.bucket.Versions(ctx, d.Key)
		if len(versions) == 0 || err != nil && !errors.Is(err, staging.ErrListingBroken) {
			return err
		}
		whole := err == nil
		for some := range slices.Chunk(versions, staging.MaxDeletes) {
			results, err := p.collector.bucket.Delete(ctx, some, p.mayDelete([]*doomed{d}))
			for _, r := range results {
				err = errors.Join(err, r.Err)
			}
			if err != nil {
				return err
			}
		}
		if whole {
			return nil
		}
	}
}
