package stack

import (
	"errors"
	"fmt"
	"time"
)

// ErrRetentionTooShort reports a retention below [MinRetention].
var ErrRetentionTooShort = errors.New("the retention is too short")

// MinRetention is the shortest retention that leaves an upload URL, which
// lives for whole seconds, a shorter life.
const MinRetention = 2 * time.Second

// Periods are the service's settings that count time.
type Periods struct {
	LeaseTTLMax         time.Duration
	UploadURLLife       time.Duration
	DownloadURLLife     time.Duration
	RetentionStaged     time.Duration
	RetentionSuperseded time.Duration
	RetentionUnknown    time.Duration
	RestoreWindow       time.Duration
	PurgeGrace          time.Duration
	RetentionTombstones time.Duration
	RetentionLeases     time.Duration
	RetentionRefusals   time.Duration
	BrakeWindow         time.Duration
	RequestTimeout      time.Duration
	GCInterval          time.Duration
}

// Scale derives all periods from one retention, so that a demonstration need
// not wait for hours: staged, superseded and unknown objects are kept for so long,
// and an object is gone after about twice that. The order that the service
// checks at its start holds: tombstones > superseded > restore window; staged
// > upload URL; purge grace > download URL and request; leases kept > longest
// lease. No period is longer than the service's default for a retention of a
// day.
func Scale(retention time.Duration) (Periods, error) {
	if retention < MinRetention {
		return Periods{}, fmt.Errorf("%w: %v, at least %v are needed", ErrRetentionTooShort, retention, MinRetention)
	}
	grace := seconds(retention*3/5, 2*time.Second, 24*time.Hour)
	leases := seconds(retention, time.Minute, 24*time.Hour) // a lease is not what one waits for
	return Periods{
		LeaseTTLMax:         leases,
		UploadURLLife:       seconds(retention*4/5, time.Second, time.Hour),
		DownloadURLLife:     seconds(grace/2, time.Second, 5*time.Minute),
		RetentionStaged:     retention,
		RetentionSuperseded: retention,
		RetentionUnknown:    retention,
		RestoreWindow:       retention / 2,
		PurgeGrace:          grace,
		RetentionTombstones: 2 * retention,
		RetentionLeases:     2 * leases,
		RetentionRefusals:   2 * leases,
		BrakeWindow:         retention,
		RequestTimeout:      min(max(grace-time.Second, time.Second), 30*time.Second),
		GCInterval:          seconds(retention/5, time.Second, 5*time.Minute),
	}, nil
}

// seconds cuts d down to whole seconds between two bounds.
func seconds(d, lowest, highest time.Duration) time.Duration {
	return min(max(d.Truncate(time.Second), lowest), highest)
}

// Variables are the periods as the service's environment variables.
func (p Periods) Variables() []string {
	variable := func(name string, d time.Duration) string { return "FENCELINE_" + name + "=" + d.String() }
	return []string{
		variable("LEASE_TTL_MAX", p.LeaseTTLMax),
		variable("UPLOAD_URL_LIFE", p.UploadURLLife),
		variable("DOWNLOAD_URL_LIFE", p.DownloadURLLife),
		variable("RETENTION_STAGED", p.RetentionStaged),
		variable("RETENTION_SUPERSEDED", p.RetentionSuperseded),
		variable("RETENTION_UNKNOWN", p.RetentionUnknown),
		variable("RESTORE_WINDOW", p.RestoreWindow),
		variable("PURGE_GRACE", p.PurgeGrace),
		variable("RETENTION_TOMBSTONES", p.RetentionTombstones),
		variable("RETENTION_LEASES", p.RetentionLeases),
		variable("RETENTION_REFUSALS", p.RetentionRefusals),
		variable("GC_BRAKE_WINDOW", p.BrakeWindow),
		variable("REQUEST_TIMEOUT", p.RequestTimeout),
		"FENCELINE_GC_SCHEDULE=@every " + p.GCInterval.String(),
		"FENCELINE_GC_FIRST_RUN=collect", // nobody is there to approve it
		"FENCELINE_GC_SCAN_EVERY=0s",
	}
}
