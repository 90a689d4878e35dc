//go:build !linux

package client

import "time"

// sinceBoot is zero: no clock that goes on through a suspend is read here, and the
// monotonic clock decides alone.
func sinceBoot() time.Duration { return 0 }
