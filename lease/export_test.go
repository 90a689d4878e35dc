package lease

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/fencing"
)

// LookEvery is how often the first in a line asks again by itself, give or take a half.
const LookEvery = lookEvery

// NewForFew is New for a process in which only so many may wait.
func NewForFew(pool *pgxpool.Pool, most int) *Authority {
	return &Authority{pool: pool, line: newLine(most)}
}

// Line is where requests wait.
type Line struct{ line *line }

// Place is that of one request in a Line.
type Place struct{ waiter *waiter }

// NewLine makes a line for so many.
func NewLine(most int) Line { return Line{newLine(most)} }

// Join takes the last place of the report's line, for any lease.
func (l Line) Join(report fencing.ReportID) (Place, error) {
	w, err := l.line.join(report, "any", "anybody")
	return Place{w}, err
}

// Leave gives a place up.
func (l Line) Leave(p Place) { l.line.leave(p.waiter) }

// Wake tells the first of the report.
func (l Line) Wake(report fencing.ReportID) { l.line.wake(report) }

// WakeAll tells the first of every report.
func (l Line) WakeAll() { l.line.wakeAll() }

// Empty tells whether nobody waits for the report.
func (l Line) Empty(report fencing.ReportID) bool { return l.line.empty(report) }

// Left tells how many wait, and for how many reports something is remembered.
func (l Line) Left() (waiting, reports int) { return l.line.total, len(l.line.waiting) }

// First is closed when it is the first.
func (p Place) First() <-chan struct{} { return p.waiter.first }

// Woken has a token when it is worth asking again.
func (p Place) Woken() <-chan struct{} { return p.waiter.woken }
