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
