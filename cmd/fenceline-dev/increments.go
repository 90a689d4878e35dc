package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/signal"
	"slices"
	"syscall"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/increments"
	"github.com/fenceline/fenceline/internal/stack"
)

// incrementsCommand lets workers add to one number under `fenceline exec`.
type incrementsCommand struct {
	Workers int     `default:"2" help:"How many add to the number at once."`
	Times   int     `default:"500" help:"How often each tries."`
	Share   float64 `default:"0.03" help:"Which share of the tries is suspended past its lease."`
	Seed    uint64  `help:"What chance begins with; told at the start, random by default."`
}

// Run returns nil only if the number is exactly how often a publish was reported as applied.
func (c *incrementsCommand) Run() (err error) {
	if c.Workers < 1 || c.Times < 1 || c.Share < 0 || c.Share > 1 {
		return errors.New("at least one worker tries at least once, and a share is from 0 to 1")
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
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
	p, err := startThrowaway(ctx, folder, 0, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()

	fmt.Printf("%d workers add one %d times each, seed %d …\n", c.Workers, c.Times, c.Seed)
	r, err := increments.Run(ctx, increments.Config{
		Program: binary, Env: environment(nil, []string{"FENCELINE_URL=" + p.service.URL, "FENCELINE_KEY=" + p.state.Keys["worker"]}), Folder: folder.Path(),
		Service: client.Config{URL: p.service.URL, Key: p.state.Keys["worker"]}, Workers: c.Workers, Times: c.Times, Share: c.Share, Seed: c.Seed,
	})
	if err != nil {
		return err
	}
	for _, code := range slices.Sorted(maps.Keys(r.Codes)) {
		fmt.Printf("exit code %3d  %d times\n", code, r.Codes[code])
	}
	fmt.Printf("suspended      %d\nnumber         %d\nversion        %d\n", r.Suspended, r.Number, r.Version)
	for _, what := range r.Broken {
		fmt.Println("broken         " + what)
	}
	if len(r.Broken) > 0 {
		return fmt.Errorf("%d things were not as they must be", len(r.Broken))
	}
	return nil
}
