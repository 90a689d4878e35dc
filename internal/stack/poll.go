package stack

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is how often a child that is starting or ending is looked at.
const pollInterval = 20 * time.Millisecond

// poll returns once ready says so, or with an error when the process ends or
// ctx does.
func (p *Process) poll(ctx context.Context, ready func() bool) error {
	for !ready() {
		select {
		case <-p.done:
			return p.Err()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w%s", p.name, context.Cause(ctx), logTail(p.log))
		case <-time.After(pollInterval):
		}
	}
	return nil
}
