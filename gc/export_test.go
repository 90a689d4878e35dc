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
