package collect

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/stack"
)

// moved is how far all passes together have come.
type moved struct {
	Pass      int64 // the newest
	Condemned int64
	Deleted   int64
}

func (m moved) work() int64 { return m.Condemned + m.Deleted }

// Collect runs the collector until nothing is left that is due, kills it on the way, and has publishers publish meanwhile.
func (f *Field) Collect(ctx context.Context) error {
	p := &publishers{field: f}
	publishing, stop := context.WithCancel(ctx)
	p.start(publishing)
	defer func() {
		stop()
		p.stop()
	}()
	if f.Publishers > 0 {
		f.tell("%d publishers publish, and no collector runs, for %v", f.Publishers, f.Quiet)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.Quiet):
	}
	started := time.Now()
	c := &collecting{Field: f, publishers: p, started: started, movedAt: started, told: started}
	if err := c.untilDone(ctx); err != nil {
		return err
	}
	f.result.Collected, f.result.Passes = since(started), int(c.last.Pass)
	f.result.PeakRSS, f.result.PeakHeap, f.result.Tables = c.peak.rss, c.peak.heap, c.tables
	return nil
}

// collecting is the collector at work.
type collecting struct {
	*Field
	publishers *publishers
	started    time.Time
	last       moved
	movedAt    time.Time
	told       time.Time
	killed     time.Time // the last time; zero once the pass after it has moved
	passes     int64     // at that time
	peak       memory
	tables     []Table
}

// untilDone starts the collector again and again: after it was killed; as long as the pass that was killed has not been
// written off; and for what was still in its grace.
func (c *collecting) untilDone(ctx context.Context) error {
	for idle := 0; ; {
		before := c.last.work()
		said, err := c.runOnce(ctx)
		if err != nil {
			return err
		}
		if err := c.look(ctx); err != nil {
			return err
		}
		if c.killed.IsZero() { // else the pass that was killed has not been written off yet
			left, err := c.left(ctx)
			if err != nil || left == 0 {
				return err
			}
		}
		if idle++; c.last.work() > before {
			idle = 0
		}
		if idle > 1 && time.Since(c.movedAt) > patience { // twice, since a pass may list for long after its last delete
			return fmt.Errorf("not all is deleted, and nothing has moved for %v. The collector said: %s", patience, said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}

// again is how long it takes until the collector is started again.
const again = 500 * time.Millisecond

// runOnce starts the collector, and looks at it until it has ended or was killed.
func (c *collecting) runOnce(ctx context.Context) (said string, err error) {
	cmd := exec.Command(c.Program, "gc", "run")
	cmd.Env = c.Env
	var complaint strings.Builder
	cmd.Stderr = &complaint
	ended, err := stack.StartBound(cmd, syscall.SIGKILL)
	if err != nil {
		return "", fmt.Errorf("start the collector: %w", err)
	}
	if c.killed.IsZero() {
		c.publishers.when.Store(working)
	}
	defer c.publishers.when.Store(between)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended: // with what code is no matter, as long as something moves
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return "", err
			}
			return complaint.String(), nil
		case <-ctx.Done():
			return "", errors.Join(ctx.Err(), kill(cmd, ended))
		case <-tick.C:
		}
		c.peak.sample(cmd.Process.Pid)
		if err := c.look(ctx); err != nil {
			return "", errors.Join(err, kill(cmd, ended))
		}
		if len(c.result.Kills) == c.Kills || c.last.work() < c.killAt() || !c.killed.IsZero() {
			continue
		}
		if err := kill(cmd, ended); err != nil {
			return "", err
		}
		return "", c.wasKilled(ctx)
	}
}

// kill kills the collector, and waits for its end.
func kill(cmd *exec.Cmd, ended <-chan error) error {
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the collector: %w", err)
	}
	<-ended
	return nil
}

// killAt is how much of the work must be done before the next kill: a third of all condemning and deleting before the
// first of two, and two thirds before the second.
func (c *collecting) killAt() int64 {
	return 2 * int64(c.Objects) * int64(len(c.result.Kills)+1) / int64(c.Kills+1)
}

func (c *collecting) wasKilled(ctx context.Context) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	c.killed, c.passes = time.Now(), c.last.Pass
	c.result.Kills = append(c.result.Kills, Kill{Condemned: c.last.Condemned, Deleted: c.last.Deleted})
	c.tell("killed the collector: %d condemned, %d deleted", c.last.Condemned, c.last.Deleted)
	if c.Killed != nil {
		return c.Killed(ctx)
	}
	return nil
}

// look reads how far the passes have come from their records, which are few.
func (c *collecting) look(ctx context.Context) error {
	const query = `
		SELECT coalesce(max(run_id), 0) AS pass, coalesce(sum(condemned), 0)::bigint AS condemned,
		       coalesce(sum(deleted), 0)::bigint AS deleted
		FROM gc_run`
	now, _, err := database.Row[moved](ctx, c.pool, query, pgx.NamedArgs{})
	if err != nil {
		return fmt.Errorf("look at the passes: %w", err)
	}
	if !c.killed.IsZero() {
		k := &c.result.Kills[len(c.result.Kills)-1]
		if now.Pass > c.passes && k.Begun == 0 {
			k.Begun = since(c.killed)
		}
		if now.work() > c.last.work() {
			k.Moved, c.killed = since(c.killed), time.Time{}
			c.publishers.when.Store(working)
		}
	}
	if now != c.last {
		c.movedAt = time.Now()
	}
	c.last = now
	c.sample()
	if time.Since(c.told) > 5*time.Second {
		c.told = time.Now()
		c.tell("condemned %d, deleted %d of %d", now.Condemned, now.Deleted, c.Objects)
		return c.lookAtTables(ctx)
	}
	return nil
}

// left is how many objects that were due are not deleted.
func (c *collecting) left(ctx context.Context) (left int64, err error) {
	const query = `SELECT count(*) FROM object WHERE state <> 'deleted' AND starts_with(object_id, $1)`
	err = c.pool.QueryRow(ctx, query, dueName).Scan(&left)
	return left, err
}
