package lease_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/lease"
)

// join takes a place that must be there.
func join(t *testing.T, l lease.Line, report fencing.ReportID) lease.Place {
	t.Helper()
	p, err := l.Join(report)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ready tells whether something can be taken from a channel, and takes it.
func ready(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// wantFirst fails the test unless exactly the places with these numbers are first.
func wantFirst(t *testing.T, places []lease.Place, want ...int) {
	t.Helper()
	var got []int
	for i, p := range places {
		if ready(p.First()) {
			got = append(got, i)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("first are or were %v, want %v", got, want)
	}
}

func TestWhoeverLeavesALineMakesTheNextTheFirstAndNobodyElse(t *testing.T) {
	t.Parallel()
	l := lease.NewLine(100)
	var places []lease.Place
	for range 5 {
		places = append(places, join(t, l, "july"))
	}
	other := join(t, l, "august") // has a line of its own
	wantFirst(t, places, 0)
	wantFirst(t, []lease.Place{other}, 0)
	l.Leave(places[2])
	wantFirst(t, places, 0)
	l.Leave(places[0])
	wantFirst(t, places, 0, 1)
	l.Leave(places[4])
	wantFirst(t, places, 0, 1)
	l.Leave(places[1])
	wantFirst(t, places, 0, 1, 3)
	l.Leave(places[3])
	if !l.Empty("july") || l.Empty("august") {
		t.Error("july's line must be empty, and august's not")
	}
	l.Leave(other)
	if waiting, reports := l.Left(); waiting != 0 || reports != 0 {
		t.Errorf("%d places of %d reports are left", waiting, reports)
	}
}

func TestOneReleaseWakesTheFirstOfItsReportAndNobodyElse(t *testing.T) {
	t.Parallel()
	l := lease.NewLine(100)
	first, second, other := join(t, l, "july"), join(t, l, "july"), join(t, l, "august")
	l.Wake("june") // for which nobody waits
	for range 3 {
		l.Wake("july") // three times is told once
	}
	if !ready(first.Woken()) || ready(first.Woken()) || ready(second.Woken()) || ready(other.Woken()) {
		t.Error("one token, and for the first alone")
	}
	l.Wake("july")
	l.Leave(first) // with the token: the second asks because it is the first now
	if !ready(second.First()) {
		t.Error("a wake-up was lost with the one that left")
	}
	l.WakeAll()
	if !ready(second.Woken()) || !ready(other.Woken()) {
		t.Error("not every line's first was woken")
	}
}

func TestALineTakesOnlySoMany(t *testing.T) {
	t.Parallel()
	l := lease.NewLine(3)
	places := []lease.Place{join(t, l, "july"), join(t, l, "july"), join(t, l, "august")}
	for range 2 {
		_, err := l.Join("september")
		wantErr(t, err, lease.ErrTooManyWaiting)
	}
	l.Leave(places[1])
	join(t, l, "september")
	_, err := l.Join("july")
	wantErr(t, err, lease.ErrTooManyWaiting)
}

// A hundred come one after the other, a third of them gives up at some time, and the others are served.
func TestALineServesInOrderOfArrivalWhoeverGivesUpInBetween(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lease.NewLine(1000)
		var mu sync.Mutex
		var served []int
		var all sync.WaitGroup
		for i := range 100 {
			p := join(t, l, "july")
			all.Go(func() {
				defer l.Leave(p)
				patience := time.Hour
				if i%3 == 1 {
					patience = time.Duration(i*37%100) * time.Millisecond
				}
				select {
				case <-p.First():
				case <-time.After(patience):
					return
				}
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond) // it works
			})
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		if !slices.IsSorted(served) || len(served) < 66 {
			t.Errorf("served were %v", served)
		}
		if waiting, reports := l.Left(); waiting != 0 || reports != 0 {
			t.Errorf("%d places of %d reports are left", waiting, reports)
		}
	})
}
