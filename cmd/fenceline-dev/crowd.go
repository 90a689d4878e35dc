package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/internal/crowd"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/stack"
	"github.com/fenceline/fenceline/staging"
)

// crowdCommand lets a crowd wait for one lease.
type crowdCommand struct {
	Waiters  int           `default:"500" help:"How many wait for the lease of one report."`
	Hold     time.Duration `default:"20ms" help:"How long each holds it."`
	Replicas int           `default:"1" help:"At how many instances of the service they wait, in turn."`
	Leavers  int           `default:"0" help:"How many of them go away while they wait."`
}

// Run returns nil only if all were served, in their order, at a bounded cost, and nothing was left behind.
func (c *crowdCommand) Run() (err error) {
	if c.Waiters < 1 || c.Replicas < 1 || c.Replicas > c.Waiters || c.Leavers < 0 || c.Leavers >= c.Waiters || c.Hold < 0 {
		return errors.New("at least one waits who does not leave, at least one at each instance, and nobody holds the lease for less than no time")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	folder, err := stack.Throwaway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	binary, err := fencelineBinary()
	if err != nil {
		return err
	}
	s, err := startServers(ctx, folder, throwawayPostgres())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	p := &platform{servers: s} // whose service runs in this process, so that it can be looked at
	if err := p.prepare(ctx, folder, binary); err != nil {
		return err
	}
	if err := p.useStorage(); err != nil {
		return err
	}
	fmt.Printf("%d wait for one lease at %d instance(s), and hold it for %v each …\n", c.Waiters, c.Replicas, c.Hold)
	r, err := crowd.Run(ctx, crowd.Config{
		Service: service.Config{
			Database: database.Config{URL: p.serviceURL()},
			Bucket:   staging.BucketConfig{Bucket: bucketName},
			Log:      slog.New(slog.DiscardHandler),
		},
		OwnerURL: p.ownerURL(),
		Waiters:  c.Waiters, Replicas: c.Replicas, Hold: c.Hold, Leavers: c.Leavers,
	})
	if err != nil {
		return err
	}
	return reportCrowd(r)
}

// reportCrowd prints what came of a crowd; an error says that it was not as it must be.
func reportCrowd(r crowd.Result) error {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	fmt.Printf("served      %d in %v, at the instances %v of the first half\n", len(r.Waits), ms(r.Took), r.FirstHalf)
	fmt.Printf("gone        %d, of whom %d were granted a lease, which expired\n", r.Gone, r.ToGone)
	fmt.Printf("waits       min %v, median %v, p99 %v, max %v\n", ms(r.Quantile(0)), ms(r.Median()), ms(r.Quantile(0.99)), ms(r.Quantile(1)))
	fmt.Printf("statements  %.2f a hand-over\n", r.Statements)
	fmt.Printf("before      %v\nafter       %v\n", r.Before, r.After)
	for _, what := range r.Broken {
		fmt.Println("broken      " + what)
	}
	if len(r.Broken) > 0 {
		return fmt.Errorf("%d things were not as they must be", len(r.Broken))
	}
	return nil
}
