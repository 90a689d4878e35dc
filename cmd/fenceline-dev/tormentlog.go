package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fenceline/fenceline/internal/check"
)

// tormentLog is what all workers and readers write down.
type tormentLog struct {
	// publishing has room for one: somebody has just begun to publish.
	publishing chan struct{}

	mu       sync.Mutex
	history  check.History
	tally    map[string]int
	uploaded []string // keys
	former   map[string][]superseded
	faults   []string // what is wrong already in the eyes of who saw it
}

// superseded is when a worker learnt that a version was visible no more.
type superseded struct {
	version int64
	at      time.Time
}

func newTormentLog() *tormentLog {
	return &tormentLog{publishing: make(chan struct{}, 1), tally: map[string]int{}, former: map[string][]superseded{}}
}

// count notes that something happened once more.
func (l *tormentLog) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally[what]++
}

// counted is how often it happened.
func (l *tormentLog) counted(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally[what]
}

// fault notes an answer that breaks a promise by itself.
func (l *tormentLog) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *tormentLog) grant(g check.Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.Grants = append(l.history.Grants, g)
}

func (l *tormentLog) publish(p check.Publish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.Publishes = append(l.history.Publishes, p)
}

func (l *tormentLog) read(r check.Read) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.Reads = append(l.history.Reads, r)
}

func (l *tormentLog) upload(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uploaded = append(l.uploaded, key)
}

// supersede notes that a version is the newest from now on.
func (l *tormentLog) supersede(report string, by int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.former[report] = append(l.former[report], superseded{version: by - 1, at: time.Now()})
}

// supersededAt is the first version of a report that was superseded after a moment, and when.
func (l *tormentLog) supersededAt(report string, after time.Time) (version int64, at time.Time, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.former[report] {
		if s.at.After(after) && s.version > 0 {
			return s.version, s.at, true
		}
	}
	return 0, time.Time{}, false
}

// beginsToPublish tells whoever lurks for it.
func (l *tormentLog) beginsToPublish() {
	select {
	case l.publishing <- struct{}{}:
	default:
	}
}

// written is all that has been written down so far.
func (l *tormentLog) written() check.History {
	l.mu.Lock()
	defer l.mu.Unlock()
	return check.History{
		Grants:    slices.Clone(l.history.Grants),
		Publishes: slices.Clone(l.history.Publishes),
		Reads:     slices.Clone(l.history.Reads),
	}
}
