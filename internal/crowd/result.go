package crowd

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Result is what came of a crowd.
type Result struct {
	Waits     []time.Duration // of those who were served, the shortest first
	Took      time.Duration   // from the first hand-over to the last
	Handovers int
	Gone      int // those who went away
	ToGone    int // leases that were granted to these, and expired

	// FirstHalf is how many of the first half of the grants went to each instance.
	FirstHalf []int

	Statements float64 // sent for each hand-over, with everything that the instances do besides
	Before     Leftovers
	After      Leftovers

	Broken []string // what did not go as it must; empty: all is well
}

// Median is the wait that half of those who were served did not exceed.
func (r *Result) Median() time.Duration { return r.Quantile(0.5) }

// Quantile is the wait that this share of those who were served did not exceed.
func (r *Result) Quantile(share float64) time.Duration {
	if len(r.Waits) == 0 {
		return 0
	}
	return r.Waits[min(len(r.Waits)-1, int(share*float64(len(r.Waits))))]
}

func (r *Result) broken(format string, args ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
}

const (
	// unfair is how many times the median the longest wait may be.
	unfair = 3
	// starved is the part of an even share below which an instance's waiters starve.
	starved = 4
	// poolSlack is how many goroutines more the pools of one instance may have than before.
	poolSlack = 10
)

// statementsPerHandover bounds what a hand-over may cost: for whoever gives the lease back and whoever comes next
// the look at the key, and the change itself; one more question for the one that finds the lease taken when it comes
// to be the first; and at every other instance one that asks in vain.
func statementsPerHandover(replicas int) float64 { return 6 + 2*float64(replicas-1) }

// judge compares what came of the crowd with what must.
func (c *crowd) judge(took time.Duration, sent int64, granted map[string]int64, before, after Leftovers) Result {
	r := Result{Took: took, Before: before, After: after}
	c.judgeGrants(&r, granted)
	slices.Sort(r.Waits)
	r.Handovers = len(r.Waits) + r.ToGone + 1
	r.Statements = float64(sent) / float64(r.Handovers)
	if most := statementsPerHandover(c.Replicas); r.Statements > most {
		r.broken("%.2f statements a hand-over, %.0f at most", r.Statements, most)
	}
	if len(r.Waits) > 0 && r.Waits[len(r.Waits)-1] > unfair*r.Median() {
		r.broken("the longest wait, %v, is more than %d times the median, %v", r.Waits[len(r.Waits)-1], unfair, r.Median())
	}
	c.judgeShares(&r, granted)
	if after.Waiting != 0 || after.Live != 0 {
		r.broken("%d requests still wait, %d leases are live", after.Waiting, after.Live)
	}
	if most := before.Goroutines + poolSlack*c.Replicas; after.Goroutines > most {
		r.broken("%d goroutines, where %d were before", after.Goroutines, before.Goroutines)
	}
	pool := int(c.replicas[0].service.Pool.Config().MaxConns) + 1 // and the one that listens
	if after.Connections > pool*c.Replicas {
		r.broken("%d connections to the database, where %d may be", after.Connections, pool*c.Replicas)
	}
	return r
}

// judgeGrants looks at who was granted the lease, how often, and in which order at each instance.
func (c *crowd) judgeGrants(r *Result, granted map[string]int64) {
	last := map[*replica]int64{}
	known := 2 // the first holder, and the last one
	for _, w := range c.waiters {
		fence, got := granted[w.id()]
		if got {
			known++
		}
		switch {
		case w.leaves:
			r.Gone++
			if got {
				r.ToGone++
			}
			continue
		case w.err != nil:
			r.broken("waiter %d: %v", w.number, w.err)
			continue
		case w.lease.Replayed() || w.lease.Fence().Counter != fence:
			r.broken("waiter %d was answered %s, replayed: %v, and the database says %d", w.number, w.lease.Fence(), w.lease.Replayed(), fence)
		case fence <= last[w.replica]:
			r.broken("waiter %d got fence %d after %d went to one that came later", w.number, fence, last[w.replica])
		}
		last[w.replica] = max(last[w.replica], fence)
		r.Waits = append(r.Waits, w.waited)
	}
	if known != len(granted) {
		r.broken("%d leases were granted, %d of them to the crowd", len(granted), known)
	}
}

// judgeShares looks at how the instances fared while all had somebody who waited.
func (c *crowd) judgeShares(r *Result, granted map[string]int64) {
	fences := slices.Sorted(maps.Values(granted))
	if len(fences) == 0 {
		return
	}
	half := fences[len(fences)/2]
	r.FirstHalf = make([]int, c.Replicas)
	for _, w := range c.waiters {
		if fence, got := granted[w.id()]; got && fence <= half {
			r.FirstHalf[w.number%c.Replicas]++
		}
	}
	for n, share := range r.FirstHalf {
		if share < len(fences)/2/c.Replicas/starved {
			r.broken("instance %d was granted %d of the first %d leases", n, share, len(fences)/2)
		}
	}
}
