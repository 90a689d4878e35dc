package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/check"
	"github.com/fenceline/fenceline/internal/fencing"
)

// tormentWorker is a worker with bad habits: it pauses, crashes, gives up, repeats itself and changes its mind.
type tormentWorker struct {
	name    string
	rng     *rand.Rand
	service *client.Client
	reports int
	keep    time.Duration // the retention
	log     *tormentLog
	session int
}

// tormentTTL is the shortest lease there is.
const tormentTTL = time.Second

func (t *torment) newWorker(n int) *tormentWorker {
	return &tormentWorker{
		name: fmt.Sprintf("worker-%d", n+1), rng: rand.New(rand.NewPCG(t.Seed, uint64(n)+1)),
		service: t.newClient("worker"),
		reports: t.Reports, keep: t.Retention, log: t.log,
	}
}

// errCrashed ends a session in the middle, as a crash of the worker would: nothing is cleared up.
var errCrashed = errors.New("the worker has crashed")

// work goes from lease to lease until it is over.
func (w *tormentWorker) work(ctx context.Context, over <-chan struct{}) {
	for ctx.Err() == nil {
		select {
		case <-over:
			return
		default:
		}
		w.session++
		err := w.lease(ctx)
		if errors.Is(err, errCrashed) {
			w.log.count("crashed")
		}
		if err != nil {
			_ = sleep(ctx, upTo(w.rng, 60*time.Millisecond)) // the loop looks at ctx
		}
	}
}

// chance is true in so many of a hundred cases.
func (w *tormentWorker) chance(percent int) bool { return w.rng.IntN(100) < percent }

// lease is one session: from a grant to a publish, or to what comes in between.
func (w *tormentWorker) lease(ctx context.Context) error {
	request := client.AcquireRequest{
		Report: reportName(w.rng.IntN(w.reports)), LeaseID: fmt.Sprintf("%s-%d", w.name, w.session),
		Holder: w.name, TTL: tormentTTL,
	}
	sentAt := time.Now()
	lease, _, err := settle(ctx, w, func() (*client.Capability, error) { return w.service.Acquire(ctx, request) })
	if err != nil {
		return err
	}
	w.log.grant(check.Grant{
		Span:   check.Span{SentAt: sentAt, AnsweredAt: time.Now()},
		Report: fencing.ReportID(lease.Report()), Lease: fencing.LeaseID(request.LeaseID), Fence: fencing.Fence(lease.Fence()),
	})
	version, err := w.stageAndPublish(ctx, lease, "first", lease.Version())
	if err == nil && w.chance(40) {
		err = w.again(ctx, lease, version)
	}
	if err != nil || w.chance(30) {
		return err // the lease expires by itself
	}
	_, _, err = settle(ctx, w, func() (struct{}, error) {
		return struct{}{}, lease.Release(ctx)
	})
	return err
}

// stageAndPublish uploads an object and makes it the next version, which it returns.
func (w *tormentWorker) stageAndPublish(ctx context.Context, l *client.Capability, object string, version int64) (int64, error) {
	if err := w.stage(ctx, l, object); err != nil {
		return 0, err
	}
	if w.chance(8) {
		return 0, w.discard(ctx, l, object)
	}
	if w.chance(25) {
		// As if stopped past the lease's end: whoever waits takes over meanwhile.
		w.log.count("paused past the lease's end")
		if err := sleep(ctx, tormentTTL+upTo(w.rng, time.Second)); err != nil {
			return 0, err
		}
	}
	r := client.PublishRequest{ObjectID: object}
	if object != "first" || w.chance(30) {
		r.ExpectedVersion = &version
	}
	if version > 0 && w.chance(4) {
		former := version - 1
		r.ExpectedVersion = &former
	}
	return w.publish(ctx, l, r)
}

// stage reserves, uploads and perhaps seals, unless the worker crashes in between.
func (w *tormentWorker) stage(ctx context.Context, l *client.Capability, object string) error {
	content := make([]byte, w.rng.IntN(20_000))
	for i := range content {
		content[i] = byte(w.rng.UintN(256))
	}
	request := client.ReserveRequest{ObjectID: object}
	if w.chance(50) {
		size, sum := int64(len(content)), sha256.Sum256(content)
		request.Size, request.SHA256 = &size, hex.EncodeToString(sum[:])
	}
	if w.chance(5) {
		return errCrashed
	}
	reservation, _, err := settle(ctx, w, func() (*client.Reservation, error) { return l.Reserve(ctx, request) })
	if err != nil {
		return err
	}
	if w.chance(5) {
		return errCrashed
	}
	if err := w.service.Send(ctx, reservation, bytes.NewReader(content), int64(len(content))); err != nil {
		return err
	}
	w.log.upload(reservation.Key)
	if w.chance(5) {
		return errCrashed
	}
	if w.chance(30) {
		_, _, err = settle(ctx, w, func() (*client.Sealed, error) { return l.Seal(ctx, object) })
	}
	return err
}

// again publishes once more under the same grant: another object, an older version, or nothing.
func (w *tormentWorker) again(ctx context.Context, l *client.Capability, version int64) error {
	r := client.PublishRequest{ExpectedVersion: &version}
	switch w.rng.IntN(4) {
	case 0:
		_, err := w.stageAndPublish(ctx, l, "second", version)
		return err
	case 1:
		r.Withdraw = true
	default:
		r.FromVersion = max(1, version-int64(w.rng.IntN(3)))
		r.FromVersion = w.brink(ctx, l.Report(), r.FromVersion)
	}
	if w.chance(10) {
		// As if it had been restarted: it does not know what it has published.
		resumed, _, err := settle(ctx, w, func() (*client.Capability, error) {
			return w.service.Resume(ctx, l.Report(), l.LeaseID(), 0)
		})
		if err != nil {
			return err
		}
		l, r.ExpectedVersion = resumed, nil
	}
	_, err := w.publish(ctx, l, r)
	return err
}

// brink waits until an older version of the report is due for the collector, where one soon is, and returns it:
// to publish it again just then meets the collector at its work. Otherwise it returns the version given.
func (w *tormentWorker) brink(ctx context.Context, report string, otherwise int64) int64 {
	version, at, found := w.log.supersededAt(report, time.Now().Add(-w.keep-500*time.Millisecond))
	wait := time.Until(at.Add(w.keep))
	if !found || wait > 700*time.Millisecond {
		return otherwise
	}
	w.log.count("roll-backs at the brink")
	_ = sleep(ctx, max(0, wait)+upTo(w.rng, 500*time.Millisecond)) // whoever publishes next looks at ctx
	return version
}

// discard takes back what was staged.
func (w *tormentWorker) discard(ctx context.Context, l *client.Capability, object string) error {
	if err := l.Discard(ctx, object); err != nil {
		return err // killed meanwhile: the collector finds it
	}
	w.log.count("discarded")
	return errDiscarded
}

// errDiscarded ends a session that has nothing to publish any more.
var errDiscarded = errors.New("the object was discarded")
