package check

import (
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
)

// History is what workers and readers wrote down of the answers that they got, in any order. All times are of
// one clock. Of answers that never came nothing need be written down, except by [Publish].
type History struct {
	Grants    []Grant
	Publishes []Publish
	Reads     []Read
}

// Span is the time from the first sending of a request to its last answer. What it asked for happened in between.
type Span struct{ SentAt, AnsweredAt time.Time }

// before tells whether s was answered before t was sent, so that what s learnt holds for t.
func (s Span) before(t Span) bool { return s.AnsweredAt.Before(t.SentAt) }

// Grant is an acknowledged lease, written down once.
type Grant struct {
	Span
	Report fencing.ReportID
	Lease  fencing.LeaseID
	Fence  fencing.Fence
}

// Outcome is how a publish ended, repeats included.
type Outcome string

const (
	// Applied and Duplicate are the results of the service's answer.
	Applied   Outcome = "applied"
	Duplicate Outcome = "duplicate"
	// Refused means that the service has settled that it was not applied, nor will be.
	Refused Outcome = "refused"
	// Unsettled means that the worker gave up before it knew.
	Unsettled Outcome = "unsettled"
)

// Publish is one publish with its repeats, all under one idempotency key.
type Publish struct {
	Span
	Report   fencing.ReportID
	Key      string
	Fence    fencing.Fence
	Outcome  Outcome
	Code     string // of what was refused
	Unknowns int    // how many of its attempts ended with the outcome unknown
	Version  int64  // of what was applied
	SHA256   string // of what was applied, in hex; "" if it shows nothing
}

// Read is one answer to a reader: the newest version, as it was told.
type Read struct {
	Span
	Report  fencing.ReportID
	Version int64
	SHA256  string // in hex; "" if it shows nothing
}
