package collect

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fenceline/fenceline/client"
)

// published is a version whose publish was acknowledged.
type published struct {
	report  string
	version int64
	digest  string
}

// When a publish was sent.
const (
	quiet   int32 = iota // before the collector began
	working              // while it worked
	between              // after it was killed, and before it works again
)

// publishers publish, each one version after the other, to the reports that the collector works on.
type publishers struct {
	field *Field
	when  atomic.Int32
	all   sync.WaitGroup

	mu        sync.Mutex
	took      [between + 1][]time.Duration
	recent    []time.Duration // since the last sample
	published []published
	failures  []error
}

const (
	// pause is how long a publisher waits from one version to the next.
	pause = 100 * time.Millisecond
	// ttl is longer than anything that is done under a lease here, also where a test moves the clock on.
	ttl = time.Hour
)

// start has them publish until ctx ends.
func (p *publishers) start(ctx context.Context) {
	for n := range p.field.Publishers {
		p.all.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for k := 0; ; k++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					p.publish(context.WithoutCancel(ctx), n, k) // what was begun is ended
				}
			}
		})
	}
}

// publish makes one version, as any worker does.
func (p *publishers) publish(ctx context.Context, publisher, k int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	report := p.field.layout.report(publisher + k*p.field.Publishers)
	object := fmt.Sprintf("%s%d-%d", publishedName, publisher, k)
	content, digest := body(report + "/" + object)
	request := client.AcquireRequest{Report: report, Holder: fmt.Sprintf("publisher-%d", publisher), TTL: ttl, Wait: 30 * time.Second}
	err := p.field.service.Hold(ctx, request, func(ctx context.Context, c *client.Capability) error {
		if _, err := c.Upload(ctx, client.UploadRequest{ObjectID: object, Body: bytes.NewReader(content)}); err != nil {
			return err
		}
		when, sent := p.when.Load(), time.Now()
		made, err := c.Publish(ctx, client.PublishRequest{ObjectID: object})
		if err != nil {
			return err
		}
		p.note(when, time.Since(sent), published{report, made.Version, fmt.Sprintf("%x", digest)})
		return nil
	})
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failures = append(p.failures, err)
	}
}

func (p *publishers) note(when int32, took time.Duration, made published) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took[when], p.recent = append(p.took[when], took), append(p.recent, took)
	p.published = append(p.published, made)
}

// lately is how publishes went since it was asked before.
func (p *publishers) lately() Latencies {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.recent = nil }()
	return latenciesOf(p.recent)
}

// stop waits until all have ended, and writes down what they did.
func (p *publishers) stop() {
	p.all.Wait()
	r := &p.field.result
	p.field.published = p.published
	r.Quiet, r.During, r.Failed = latenciesOf(p.took[quiet]), latenciesOf(p.took[working]), len(p.failures)
	for _, err := range p.failures[:min(3, len(p.failures))] {
		p.field.broken("a publish has failed: %v", err)
	}
	if p.field.Publishers > 0 && r.During.N == 0 {
		p.field.broken("nothing was published while the collector worked")
	}
}
