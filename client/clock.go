package client

import "time"

// instant is one moment on two clocks. The monotonic clock may stand still while the
// machine is suspended; the boot clock, where there is one, does not.
type instant struct {
	mono time.Time
	boot time.Duration
}

// readClock is the present moment.
func readClock() instant { return instant{mono: time.Now(), boot: sinceBoot()} }

// plus is the moment that lies d later on both clocks.
func (i instant) plus(d time.Duration) instant {
	return instant{mono: i.mono.Add(d), boot: i.boot + d}
}

// until is how long it is from i to then, by the clock that says less.
func (i instant) until(then instant) time.Duration {
	return min(then.mono.Sub(i.mono), then.boot-i.boot)
}

// latest is, on each clock, the later of two moments.
func latest(a, b instant) instant {
	if b.mono.After(a.mono) {
		a.mono = b.mono
	}
	a.boot = max(a.boot, b.boot)
	return a
}
