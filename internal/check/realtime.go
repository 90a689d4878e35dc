package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fenceline/fenceline/internal/fencing"
)

// event is an answer as a step on one of two ladders of a report, on which nobody may find himself lower than
// one who had been answered before he asked: the fences that were granted, and the versions.
type event struct {
	Span
	report fencing.ReportID
	fence  fencing.Fence // on the ladder of fences
	step   int64         // on the ladder of versions
	made   bool          // it climbed a step, and did not only see one: it must be strictly above
	what   string
}

// compareTimes holds the answers to the order in which they came.
func (c *checker) compareTimes(h History, lenient map[fencing.ReportID]bool) {
	var fences, versions []event
	for _, g := range h.Grants {
		what := fmt.Sprintf("the lease %s with fence %s", g.Lease, g.Fence)
		fences = append(fences, event{Span: g.Span, report: g.Report, fence: g.Fence, made: true, what: what})
	}
	for _, p := range h.Publishes {
		if p.Outcome != Applied && p.Outcome != Duplicate {
			continue
		}
		what := fmt.Sprintf("version %d under %s, with the key %s", p.Version, p.Fence, p.Key)
		versions = append(versions, event{Span: p.Span, report: p.Report, step: p.Version, made: true, what: what})
	}
	for _, r := range h.Reads {
		what := fmt.Sprintf("a reader's version %d", r.Version)
		versions = append(versions, event{Span: r.Span, report: r.Report, step: r.Version, what: what})
	}
	c.climb("G1", "an acknowledged fence is greater than those acknowledged before it was asked for", fences)
	c.climb("G2", "versions do not go back, neither for workers nor for readers", versions)
	c.compareStale(h, lenient)
	c.compareUnique(h.Grants)
}

// climb reports every event that is not above the highest which had been answered before it was sent.
func (c *checker) climb(guarantee, promise string, events []event) {
	eachAfter(events, events, func(before, e event) {
		if order := compareSteps(before, e); order > 0 || order == 0 && e.made && before.made {
			c.found(Violation{
				Guarantee: guarantee, Promise: promise, Report: string(e.report),
				Says: fmt.Sprintf("%s came after %s", e.what, before.what),
			})
		}
	})
}

// compareStale reports what was published under a fence although a greater grant had been acknowledged before
// the publish was first sent.
func (c *checker) compareStale(h History, lenient map[fencing.ReportID]bool) {
	var grants, publishes []event
	for _, g := range h.Grants {
		grants = append(grants, event{Span: g.Span, report: g.Report, fence: g.Fence})
	}
	for _, p := range h.Publishes {
		if (p.Outcome == Applied || p.Outcome == Duplicate) && !lenient[p.Report] {
			what := fmt.Sprintf("version %d, with the key %s", p.Version, p.Key)
			publishes = append(publishes, event{Span: p.Span, report: p.Report, fence: p.Fence, what: what})
		}
	}
	eachAfter(grants, publishes, func(granted, p event) {
		if granted.fence.Compare(p.fence) > 0 {
			c.found(Violation{
				Guarantee: "G2", Promise: "nothing is published under a fence once a greater grant was acknowledged",
				Report: string(p.report),
				Says:   fmt.Sprintf("%s was published under %s after the grant of %s had been acknowledged", p.what, p.fence, granted.fence),
			})
		}
	})
}

// compareUnique reports a fence that was acknowledged for two leases.
func (c *checker) compareUnique(grants []Grant) {
	type key struct {
		report fencing.ReportID
		fence  fencing.Fence
	}
	of := map[key]fencing.LeaseID{}
	for _, g := range grants {
		k := key{g.Report, g.Fence}
		if other, seen := of[k]; seen && other != g.Lease {
			c.found(Violation{
				Guarantee: "G1", Promise: "a fence is granted once", Report: string(g.Report),
				Says: fmt.Sprintf("%s was granted to the leases %s and %s", g.Fence, other, g.Lease),
			})
		}
		of[k] = g.Lease
	}
}

// compareSteps orders two events of one ladder.
func compareSteps(a, b event) int {
	return cmp.Or(a.fence.Compare(b.fence), cmp.Compare(a.step, b.step))
}

// eachAfter calls do for each of later, with the highest of the earlier events of its report that had been
// answered before it was sent.
func eachAfter(earlier, later []event, do func(before, e event)) {
	answered, sent := slices.Clone(earlier), slices.Clone(later)
	slices.SortFunc(answered, func(a, b event) int { return a.AnsweredAt.Compare(b.AnsweredAt) })
	slices.SortFunc(sent, func(a, b event) int { return a.SentAt.Compare(b.SentAt) })
	highest := map[fencing.ReportID]event{}
	next := 0
	for _, e := range sent {
		for ; next < len(answered) && answered[next].before(e.Span); next++ {
			a := answered[next]
			h, seen := highest[a.report]
			if order := compareSteps(a, h); !seen || order > 0 || order == 0 && a.made {
				highest[a.report] = a
			}
		}
		if h, seen := highest[e.report]; seen {
			do(h, e)
		}
	}
}
