package schedule

import (
	"context"
	"log/slog"
	"sync"
)

// Serve lets what is due begin, and runs what comes by begun, until ctx ends; it returns when the last run has stopped. What
// has come and was not run by then is given back. What panics in a run is logged, and ends that run alone.
func Serve[T any](ctx context.Context, due *Schedule, log *slog.Logger, begun <-chan T, run, giveBack func(T)) {
	var runs sync.WaitGroup
	defer runs.Wait()
	due.Start()
	defer due.Stop()
	for ctx.Err() == nil {
		select {
		case x := <-begun:
			runs.Go(recovered(log, func() { run(x) }))
		case <-ctx.Done():
		}
	}
	for {
		select {
		case x := <-begun:
			giveBack(x)
		default:
			return
		}
	}
}
