package check_test

import (
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/check"
	"github.com/fenceline/fenceline/internal/fencing"
)

func TestTheCheckerFindsAnswersThatBreakAPromise(t *testing.T) {
	t.Parallel()
	j := startJuly(t)
	for _, c := range []struct {
		name    string
		forge   func(*testing.T, *check.History)
		promise string
	}{
		{
			"a grant is not on record", func(_ *testing.T, h *check.History) { h.Grants[1].Lease = "ghost" },
			"an acknowledged grant is not lost",
		},
		{
			"a grant is on record with another fence", func(_ *testing.T, h *check.History) { h.Grants[0].Fence.Epoch = 0 },
			"an acknowledged grant is not lost",
		},
		{
			"a grant is above what the report remembers", func(_ *testing.T, h *check.History) { h.Grants[1].Fence.Counter = 9 },
			"an acknowledged grant is not lost",
		},
		{
			"a publish is not there", func(_ *testing.T, h *check.History) { h.Publishes[0].Key = "lost" },
			"an acknowledged publish is there as it was acknowledged",
		},
		{
			"a publish is there as another version", func(_ *testing.T, h *check.History) { h.Publishes[0].Version = 7 },
			"an acknowledged publish is there as it was acknowledged",
		},
		{
			"a publish is there with another digest", func(_ *testing.T, h *check.History) { h.Publishes[0].SHA256 = "00" },
			"an acknowledged publish is there as it was acknowledged",
		},
		{
			"a refused publish is there", func(_ *testing.T, h *check.History) { h.Publishes[1].Outcome = check.Refused },
			"a refused publish does not take effect",
		},
		{
			"a duplicate of nothing", func(_ *testing.T, h *check.History) { h.Publishes[1].Outcome = check.Duplicate },
			"what is said not to be applied is not",
		},
		{
			"a reader was shown other bytes", func(_ *testing.T, h *check.History) { h.Reads[0].SHA256 = "00" },
			"readers are shown what was published",
		},
		{
			"a reader was shown what never was", func(_ *testing.T, h *check.History) { h.Reads[1].Version = 3 },
			"readers are shown what was published",
		},
		{
			"a fence falls in real time", func(_ *testing.T, h *check.History) {
				h.Grants[0].Span, h.Grants[1].Span = h.Grants[1].Span, h.Grants[0].Span
			},
			"an acknowledged fence is greater than those acknowledged before it was asked for",
		},
		{
			"a fence is granted twice", func(t *testing.T, h *check.History) {
				h.Grants = append(h.Grants, grant(t, "a3", "1.2", time.Time{}, time.Now()))
			},
			"a fence is granted once",
		},
		{
			"a publish comes after a greater grant", func(_ *testing.T, h *check.History) {
				h.Publishes[0].Span = h.Publishes[1].Span
			},
			"nothing is published under a fence once a greater grant was acknowledged",
		},
		{
			"a version is made twice", func(_ *testing.T, h *check.History) { h.Publishes[1].Version = 1 },
			"versions do not go back, neither for workers nor for readers",
		},
		{
			"a reader goes back", func(_ *testing.T, h *check.History) { h.Reads[1] = later(h.Reads[0], h.Reads[1]) },
			"versions do not go back, neither for workers nor for readers",
		},
		{
			"a reader misses an acknowledged publish", func(_ *testing.T, h *check.History) {
				h.Reads = []check.Read{later(h.Reads[0], h.Reads[1])}
			},
			"versions do not go back, neither for workers nor for readers",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := check.History{
				Grants:    append([]check.Grant(nil), j.history.Grants...),
				Publishes: append([]check.Publish(nil), j.history.Publishes...),
				Reads:     append([]check.Read(nil), j.history.Reads...),
			}
			c.forge(t, &h)
			wantViolation(t, j.check(t, h), c.promise)
		})
	}
}

func TestAnUnsettledPublishMayBeThereOrNot(t *testing.T) {
	t.Parallel()
	j := startJuly(t)
	h := j.history
	h.Publishes = append([]check.Publish{{Report: "july", Key: "never", Outcome: check.Unsettled, Unknowns: 1}}, h.Publishes...)
	h.Publishes[2].Outcome, h.Publishes[2].Unknowns = check.Unsettled, 1
	if found := j.check(t, h).Violations; len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestADuplicateAfterAnUnknownOutcomeIsAsItShouldBe(t *testing.T) {
	t.Parallel()
	j := startJuly(t)
	h := j.history
	h.Publishes[1].Outcome, h.Publishes[1].Unknowns = check.Duplicate, 1
	if found := j.check(t, h).Violations; len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestAnswersThatCrossEachOtherHaveNoOrder(t *testing.T) {
	t.Parallel()
	j := startJuly(t)
	h := j.history
	for i := range h.Reads { // as if both had been under way from the first publish on
		h.Reads[i].SentAt = h.Publishes[0].SentAt
	}
	if found := j.check(t, h).Violations; len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// later is an answer as if it had come at the time of another.
func later(r, at check.Read) check.Read {
	r.Span = at.Span
	return r
}

func grant(t *testing.T, id, fence string, sent, answered time.Time) check.Grant {
	t.Helper()
	return check.Grant{
		Span: check.Span{SentAt: sent, AnsweredAt: answered}, Report: "july", Lease: fencing.LeaseID(id),
		Fence: parseFence(t, fence),
	}
}

func parseFence(t *testing.T, text string) fencing.Fence {
	t.Helper()
	f, err := fencing.ParseFence(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
