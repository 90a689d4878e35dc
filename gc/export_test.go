package gc

import (
	"context"
	"time"
)

// Next is when the first pass after a moment is due by the schedule.
func (c *Collector) Next(ctx context.Context, after time.Time) (time.Time, error) {
	scheduled, err := c.scheduler(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return scheduled.Next(after), nil
}

// RunDue runs a pass as the schedule does when its time has come.
func (c *Collector) RunDue(ctx context.Context) { c.runDue(ctx) }

// OnWait has passes wait for a throttling storage by a test's means.
func OnWait(cfg *Config, wait func(context.Context, time.Duration) error) { cfg.wait = wait }

// OnPace has passes keep to the pace by a test's means.
func OnPace(cfg *Config, waitN func(context.Context, int) error) { cfg.pace = paceFunc(waitN) }

type paceFunc func(context.Context, int) error

func (f paceFunc) WaitN(ctx context.Context, n int) error { return f(ctx, n) }
