package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/internal/stack"
)

// demoCommand plays the story of a worker that was paused at the worst moment.
type demoCommand struct{}

// The story's periods are short, but real: the lease expires by the database's
// clock, and the collector waits for the retention.
const (
	demoRetention = 5 * time.Second
	demoTTL       = 2 * time.Second
	demoReport    = "july"
)

// Run returns nil only if every step was as the contract says.
func (demoCommand) Run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	fmt.Print(demoPrologue)
	folder, err := stack.Throwaway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	p, err := startThrowaway(ctx, folder, demoRetention, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()

	s := newStory(p, folder)
	defer s.end()
	for _, scene := range []func(context.Context) error{
		s.aAcquires, s.aUploads, s.aIsPaused, s.leaseExpires, s.bPublishes, s.readerSeesB,
		s.aPublishesTooLate, s.readerStillSeesB, s.collectorTakesA,
	} {
		s.step++
		if err := scene(ctx); err != nil {
			return fmt.Errorf("step %d was not as the contract says: %w", s.step, err)
		}
	}
	fmt.Print(demoEpilogue)
	return nil
}

const demoPrologue = `
Two workers, A and B, write the same report. A is paused at the worst moment, just before
it publishes, and wakes up when B has long taken over. A lease alone does not help: A
cannot notice in its sleep that its time is over. What follows is real: processes,
signals, a PostgreSQL, an S3 server and the Fenceline service, all started for this.

`

const demoEpilogue = `
That is fencing: every grant carries a number that only grows, and the place where the
result becomes visible compares it, in the same transaction. The paused worker was
stopped there, however late it woke up, and what it left behind was cleared away.
`
