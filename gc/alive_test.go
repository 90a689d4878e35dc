package gc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

func TestTenPublishersLoseNothingToTwoCollectorsThatNeverRest(t *testing.T) {
	t.Parallel()
	const publishers, each = 10, 1000
	// The shortest that there is: what is not held is due a millisecond later. It goes when its upload URL has
	// ended, to which the clock leaps with every pass.
	const life = time.Minute
	const never = 1_000_000 * time.Hour // to be written off: each look at whether the other is at work is such a leap
	b := setupOn(t, testbucket.New(t), staging.Config{
		UploadURLLife: life, Retention: time.Millisecond, PurgeGrace: time.Millisecond,
	}, time.Millisecond)
	newCollector := func() *gc.Collector {
		return b.collector(func(cfg *gc.Config) { cfg.PurgeGrace, cfg.Silence = time.Millisecond, never })
	}
	c := newCollector()

	working, done := context.WithCancel(t.Context())
	ended := make(chan struct{}, 1) // a pass has, so another may begin
	restless := func(c *gc.Collector) func() error {
		return func() error {
			for working.Err() == nil {
				b.db.Advance(t, life)
				p, err := c.Begin(t.Context(), gc.Options{By: "test", Scan: true})
				if errors.Is(err, gc.ErrAlreadyRunning) {
					select {
					case <-ended:
					case <-working.Done():
					}
					continue
				}
				if err == nil {
					err = p.Run(t.Context())
				}
				select {
				case ended <- struct{}{}:
				default:
				}
				if err != nil && !errors.Is(err, gc.ErrRunEnded) { // the other one's clock has leapt
					return err
				}
			}
			return nil
		}
	}
	collecting, helping := async(restless(c)), async(restless(newCollector()))
	var group errgroup.Group
	for i := range publishers {
		p := &publisher{b: b, report: fencing.ReportID(fmt.Sprintf("report-%d", i))}
		group.Go(func() error { return p.work(t.Context(), each) })
	}
	err := group.Wait()
	done()
	must(t, "collect", await(t, "the collector", collecting))
	must(t, "collect", await(t, "the other collector", helping))
	must(t, "publish", err)

	applied := testdb.Value[int64](t, b.db, "SELECT sum(version)::bigint FROM report")
	deleted := testdb.Value[int64](t, b.db, "SELECT sum(deleted)::bigint FROM gc_run")
	t.Logf("%d publishes were applied, and %d objects deleted meanwhile", applied, deleted)
	if applied < publishers*each || deleted == 0 {
		t.Errorf("%d publishes were applied and %d objects deleted, want at least %d and some", applied, deleted, publishers*each)
	}
	b.wantIntact(t)

	b.db.Advance(t, life)
	collect(t, c) // condemns the last
	b.db.Advance(t, life)
	collect(t, c)
	if keys := b.storage.Keys(t); len(keys) != publishers {
		t.Errorf("%d keys are left, want the %d that are visible", len(keys), publishers)
	}
	b.wantIntact(t)
}

// publisher publishes to a report of its own, under one grant after the other: new objects, older versions'
// objects that the collector may just be looking at, and what is visible already.
type publisher struct {
	b       *bundle
	report  fencing.ReportID
	grant   lease.Grant
	version int64
}

func (p *publisher) work(ctx context.Context, publishes int) (err error) {
	for n := range publishes {
		if n%10 == 0 {
			if err := p.renew(ctx); err != nil {
				return err
			}
		}
		if err := p.publish(ctx, n); err != nil {
			return fmt.Errorf("publish %d of %q: %w", n, p.report, err)
		}
		switch {
		case n%20 == 1:
			err = p.again(ctx, p.version) // what is visible
		case n%20 == 3:
			err = p.again(ctx, p.version-1) // what was a moment ago
		}
		if err != nil {
			return fmt.Errorf("publish an older version of %q again: %w", p.report, err)
		}
	}
	return nil
}

// renew takes a new grant in place of the present one.
func (p *publisher) renew(ctx context.Context) (err error) {
	if p.grant.Lease != "" {
		if _, err := p.b.leases.Release(ctx, p.report, p.grant.Lease); err != nil {
			return err
		}
	}
	p.grant, err = p.b.leases.Acquire(ctx, lease.Request{
		Report: p.report, Lease: fencing.LeaseID(uuid.NewString()), Holder: "publisher", TTL: 1000 * time.Hour,
	})
	return err
}

func (p *publisher) publish(ctx context.Context, n int) error {
	body := fmt.Sprintf("%s %d", p.report, n)
	name, r, err := p.b.reserve(ctx, p.grant, fencing.ObjectID(fmt.Sprintf("data-%d", n)), body)
	if err != nil {
		return err
	}
	if err := upload(ctx, r.Upload, body); err != nil {
		return err
	}
	return p.send(ctx, catalog.Request{Object: name.Object}, sum(body))
}

// again publishes the object of a version once more, unless it has been collected.
func (p *publisher) again(ctx context.Context, version int64) error {
	older, err := p.b.catalog.Version(ctx, p.report, version)
	if err != nil {
		return err
	}
	err = p.send(ctx, catalog.Request{FromVersion: version}, older.Object.SHA256)
	if errors.Is(err, fencing.ErrObjectGone) && version < p.version {
		return nil
	}
	return err
}

// send publishes, and reads what was published as a reader does.
func (p *publisher) send(ctx context.Context, r catalog.Request, want string) error {
	r.Report, r.Fence, r.IdempotencyKey, r.ExpectedVersion = p.report, p.grant.Fence, uuid.NewString(), &p.version
	receipt, err := p.b.catalog.Publish(ctx, r)
	if err != nil {
		return err
	}
	p.version = receipt.Version
	visible, err := p.b.catalog.Visible(ctx, p.report)
	if err != nil {
		return err
	}
	if visible.Version != p.version || visible.Object.SHA256 != want {
		return fmt.Errorf("version %d was acknowledged, and %d is visible", p.version, visible.Version)
	}
	return p.b.read(ctx, visible)
}
