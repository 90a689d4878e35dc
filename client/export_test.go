package client

import (
	"context"
	"time"
)

// SetClocks makes c read the time from a monotonic and from a boot clock of the test's.
func (c *Client) SetClocks(mono func() time.Time, boot func() time.Duration) {
	c.now = func() instant { return instant{mono: mono(), boot: boot()} }
}

// Granted is a capability as if the lease a7 of the report july had been acquired for an
// hour.
func (c *Client) Granted(fence Fence) *Capability {
	got := leaseOnWire{Report: "july", LeaseID: "a7", Holder: "h", Fence: fence, RemainingMS: time.Hour.Milliseconds()}
	return c.capability(context.Background(), got, time.Hour, c.now())
}

// MaxMemory is how much of a body is kept in memory.
const MaxMemory = maxMemory
