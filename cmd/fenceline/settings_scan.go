package main

import (
	"fmt"
	"time"

	"github.com/fenceline/fenceline/gc"
)

// scanEvery is how often a pass of the collector scans the bucket: a time, or off.
type scanEvery time.Duration

// UnmarshalText reads a time, of which none at all means every pass, or off.
func (e *scanEvery) UnmarshalText(text []byte) error {
	if string(text) == scheduleOff {
		*e = scanEvery(gc.ScanNever)
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if d < 0 || d > longestPeriod {
		return fmt.Errorf("%s must be from 0s to ten years, or off", text)
	}
	*e = scanEvery(max(d, gc.ScanAlways))
	return nil
}
