package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/check"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/stack"
	"github.com/fenceline/fenceline/staging"
)

// tormentCommand works with a service that is killed again and again, and then checks what it has done.
type tormentCommand struct {
	Kills     int           `default:"50" help:"How often to kill the service, or now and then PostgreSQL."`
	Seed      uint64        `default:"1" help:"Chooses what everybody does, and when. The same seed makes the same choices; how they meet is up to the machine."`
	Workers   int           `default:"4" help:"How many workers publish at the same time."`
	Reports   int           `default:"3" help:"How many reports they fight over."`
	Retention time.Duration `default:"2s" help:"Keep objects for so long, and scale every other period with it (at least 2s)."`
}

// Run returns nil only if the guarantees held, and were put to the test.
func (c *tormentCommand) Run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	folder, err := stack.Throwaway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	p, err := c.startPlatform(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	t, err := newTorment(ctx, *c, p, folder)
	if err != nil {
		return err
	}
	defer t.pool.Close()
	if err := t.storm(ctx); err != nil {
		return err
	}
	if err := t.judge(ctx); err != nil {
		return err
	}
	t.summarize()
	return t.verdict()
}

// startPlatform starts a service that comes back when it is killed, and remembers all leases for the checker.
func (c *tormentCommand) startPlatform(ctx context.Context, folder *stack.Folder) (*platform, error) {
	// Nobody is there to look at what the brake would hold back.
	return startThrowaway(ctx, folder, c.Retention, true, "FENCELINE_RETENTION_LEASES=24h", "FENCELINE_GC_BRAKE_SHARE=1")
}

// torment is one torment under way.
type torment struct {
	tormentCommand
	platform *platform
	folder   *stack.Folder
	pool     *pgxpool.Pool // the owner's
	bucket   *staging.Bucket
	log      *tormentLog
	started  time.Time
	took     time.Duration
	epochs   int
	left     map[string]bool // keys in the bucket at the end
	checked  check.Report
}

func newTorment(ctx context.Context, c tormentCommand, p *platform, folder *stack.Folder) (*torment, error) {
	for _, variable := range p.storageVariables() { // the AWS SDK looks for its credentials there
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	bucket, err := staging.OpenBucket(ctx, staging.BucketConfig{Bucket: bucketName})
	if err != nil {
		return nil, err
	}
	pool, err := database.Open(ctx, database.Config{URL: p.ownerURL(), Pool: 4, Name: "fenceline-torment"})
	if err != nil {
		return nil, err
	}
	return &torment{
		tormentCommand: c, platform: p, folder: folder, pool: pool, bucket: bucket,
		log: newTormentLog(), started: time.Now(), left: map[string]bool{},
	}, nil
}

// storm lets everybody work until the last kill, and then finish what they are at.
func (t *torment) storm(ctx context.Context) error {
	fmt.Printf("Tormenting %d workers on %d reports, with seed %d and %d kills …\n", t.Workers, t.Reports, t.Seed, t.Kills)
	watching, unwatch := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- t.platform.service.Watch(watching) }()

	over := make(chan struct{})
	var busy sync.WaitGroup
	for n := range t.Workers {
		w := t.newWorker(n)
		busy.Go(func() { w.work(ctx, over) })
	}
	for n := range tormentReaders {
		r := t.newReader(n)
		busy.Go(func() { r.read(ctx, over) })
	}
	err := t.killAll(ctx, watched)
	close(over)
	busy.Wait()
	if err == nil {
		err = t.awaitCollected(ctx)
	}
	t.took = time.Since(t.started)
	unwatch()
	return errors.Join(err, ctx.Err(), drained(watched))
}

// tormentReaders is how many read all the time.
const tormentReaders = 2

// drained is the error in a channel that may be empty already.
func drained(watched <-chan error) error {
	select {
	case err := <-watched:
		return err
	case <-time.After(time.Second): // it was taken by whoever waited for the service
		return nil
	}
}

// newClient makes a client that makes one attempt: a worker here sees every answer that it does not get.
func (t *torment) newClient(role string) *client.Client {
	return client.New(client.Config{
		URL: t.platform.service.URL, Key: t.platform.state.Keys[role],
		MaxAttempts: 1, AttemptTimeout: 5 * time.Second, UserAgent: "fenceline-torment",
	})
}

// reportName names the nth report.
func reportName(n int) string { return fmt.Sprintf("report-%d", n+1) }

// awaitCollected waits until everything is gone that is not visible. Passes that were killed hold the
// collector up for half a minute, so it takes a while.
func (t *torment) awaitCollected(ctx context.Context) error {
	const query = `
		SELECT count(*) FROM object
		WHERE state IN ('reserved', 'condemned') OR state = 'sealed' AND eligible_at IS NOT NULL`
	fmt.Println("Everybody rests, and the collector clears up …")
	patience := time.After(3*time.Minute + 10*t.Retention)
	for {
		var left int
		if err := t.pool.QueryRow(ctx, query).Scan(&left); err != nil {
			return fmt.Errorf("ask what is left to collect: %w", err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience:
			t.log.fault("the collector has left %d objects behind", left)
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}
