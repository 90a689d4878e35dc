package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postgresTurn is at which of the kills it is PostgreSQL's turn.
const postgresTurn = 8

// killAll kills, one after the other, and has everything checked half-way, while all are working.
func (t *torment) killAll(ctx context.Context, watched <-chan error) error {
	rng := rand.New(rand.NewPCG(t.Seed, 0))
	for n := 1; n <= t.Kills; n++ {
		if err := t.lurk(ctx, rng); err != nil {
			return err
		}
		kill := t.killService
		if n%postgresTurn == 0 {
			kill = t.killPostgres
		}
		if err := kill(ctx, watched); err != nil {
			return err
		}
		if n == t.Kills/2 {
			if err := t.checkHalfway(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// lurk waits for the moment to kill: any, or shortly after a worker has sent a publish.
func (t *torment) lurk(ctx context.Context, rng *rand.Rand) error {
	aimed, wait, delay := rng.IntN(2) == 0, upTo(rng, 1500*time.Millisecond), upTo(rng, 12*time.Millisecond)
	if err := sleep(ctx, wait); err != nil || !aimed {
		return err
	}
	select { // what was left there is long over
	case <-t.log.publishing:
	default:
	}
	select {
	case <-t.log.publishing:
	case <-time.After(5 * time.Second): // nobody publishes
	case <-ctx.Done():
	}
	return sleep(ctx, delay)
}

func (t *torment) killService(ctx context.Context, watched <-chan error) error {
	pid, err := t.servicePID()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the service: %w", err)
	}
	t.log.count("killed the service")
	return t.awaitReady(ctx, watched, func() bool {
		now, err := t.servicePID()
		return err == nil && now != pid
	})
}

// killPostgres kills the server, whose sessions notice on their own and end, and starts it again on its data.
func (t *torment) killPostgres(ctx context.Context, watched <-chan error) error {
	if err := t.platform.killPostgres(); err != nil {
		return err
	}
	t.log.count("killed PostgreSQL")
	if err := t.platform.revivePostgres(ctx, t.folder); err != nil {
		return err
	}
	return t.awaitReady(ctx, watched, func() bool { return true })
}

// awaitReady returns when the service takes requests again.
func (t *torment) awaitReady(ctx context.Context, watched <-chan error, replaced func() bool) error {
	for patience := time.After(time.Minute); ; {
		if replaced() && t.answersReady(ctx) {
			return nil
		}
		select {
		case err := <-watched:
			return fmt.Errorf("the service does not come back: %w", err)
		case <-patience:
			return errors.New("the service has not come back within a minute")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// servicePID is the process that serves now; the file is being written for a moment after a restart.
func (t *torment) servicePID() (int, error) {
	text, err := os.ReadFile(t.platform.service.PIDFile)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// sleep waits for d, or for the end of ctx, which it returns.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// upTo is a random time below d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
