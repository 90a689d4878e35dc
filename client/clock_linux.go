package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads the clock that goes on through a suspend.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0 // the monotonic clock decides alone
	}
	return time.Duration(now.Nano())
}
