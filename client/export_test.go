package client

import "time"

// SetClocks makes c read the time from a monotonic and from a boot clock of the test's.
func (c *Client) SetClocks(mono func() time.Time, boot func() time.Duration) {
	c.now = func() instant { return instant{mono: mono(), boot: boot()} }
}
