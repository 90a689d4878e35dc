package lease

import (
	"container/list"
	"errors"
	"sync"

	"github.com/fenceline/fenceline/internal/fencing"
)

// ErrTooManyWaiting reports that no further request can wait in this process.
var ErrTooManyWaiting = errors.New("too many requests wait for leases")

// line is where requests wait for the leases of reports, in the order in which they came. Only the first of
// each report asks the database, so that a release wakes one and not hundreds.
type line struct {
	most int

	mu      sync.Mutex
	waiting map[fencing.ReportID]*list.List // of *waiter
	total   int
}

// waiter is one request in a line.
type waiter struct {
	report   fencing.ReportID
	lease    fencing.LeaseID
	holder   string
	place    *list.Element
	first    chan struct{} // closed when it is the first
	answered chan struct{} // closed when its lease was granted to another request of the same id, or was lost
	woken    chan struct{} // holds a token when it is worth asking again
}

func newLine(most int) *line {
	return &line{most: most, waiting: map[fencing.ReportID]*list.List{}}
}

// join puts a request at the end of its report's line. Error: ErrTooManyWaiting.
func (l *line) join(report fencing.ReportID, lease fencing.LeaseID, holder string) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.most {
		return nil, ErrTooManyWaiting
	}
	l.total++
	if l.waiting[report] == nil {
		l.waiting[report] = list.New()
	}
	w := &waiter{
		report: report, lease: lease, holder: holder,
		first: make(chan struct{}), answered: make(chan struct{}), woken: make(chan struct{}, 1),
	}
	w.place = l.waiting[report].PushBack(w)
	if l.waiting[report].Len() == 1 {
		close(w.first)
	}
	return w, nil
}

// leave takes a request out, wherever it stands; the next one is the first then.
func (l *line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.waiting[w.report]
	wasFirst := queue.Front() == w.place
	queue.Remove(w.place)
	l.total--
	if queue.Len() == 0 {
		delete(l.waiting, w.report)
		return
	}
	if wasFirst {
		close(queue.Front().Value.(*waiter).first)
	}
}

// tell lets those out of the line who ask for a lease that was answered for: there is an answer for them as well,
// wherever they stand.
func (l *line) tell(report fencing.ReportID, lease fencing.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.waiting[report]
	if queue == nil {
		return
	}
	for place := queue.Front(); place != nil; place = place.Next() {
		w := place.Value.(*waiter)
		if w.lease != lease {
			continue
		}
		select {
		case <-w.answered: // it was told
		default:
			close(w.answered)
		}
	}
}

// asksFor tells whether somebody behind the first asks in the name of this holder.
func (l *line) asksFor(report fencing.ReportID, holder string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.waiting[report]
	if queue == nil {
		return false
	}
	for place := queue.Front().Next(); place != nil; place = place.Next() {
		if place.Value.(*waiter).holder == holder {
			return true
		}
	}
	return false
}

// empty tells whether nobody waits for the report.
func (l *line) empty(report fencing.ReportID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[report] == nil
}

// size is how many requests wait.
func (l *line) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// wake tells the first in the report's line that it is worth asking again.
func (l *line) wake(report fencing.ReportID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if queue := l.waiting[report]; queue != nil {
		select {
		case queue.Front().Value.(*waiter).woken <- struct{}{}:
		default: // it has been told
		}
	}
}

// wakeAll wakes the first of every line: something may have been missed.
func (l *line) wakeAll() {
	l.mu.Lock()
	reports := make([]fencing.ReportID, 0, len(l.waiting))
	for report := range l.waiting {
		reports = append(reports, report)
	}
	l.mu.Unlock()
	for _, report := range reports {
		l.wake(report)
	}
}
