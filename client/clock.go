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

// since is how long ago start was, by the clock that says more.
func (i instant) since(start instant) time.Duration {
	return max(i.mono.Sub(start.mono), i.boot-start.boot)
}
