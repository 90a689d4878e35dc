package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/schedule"
)

// longestPeriod is the longest that a period may be set to: whatever is longer is a slip of the hand.
const longestPeriod = 10 * 365 * 24 * time.Hour

// shortRetention is what a retention may not be below without permission: a slip here deletes reports.
const shortRetention = time.Hour

// period is one setting of time, with its flag.
type period struct {
	flag  string
	value time.Duration
}

// check refuses silly values, and an order of the periods in which the collector could take what is still
// needed. limits may be nil where a command serves no requests.
func (s retentionSettings) check(limits *limitSettings) error {
	upload := period{"--upload-url-life", s.UploadURLLife}
	download := period{"--download-url-life", s.DownloadURLLife}
	staged := period{"--retention-staged", s.RetentionStaged}
	superseded := period{"--retention-superseded", s.RetentionSuperseded}
	unknown := period{"--retention-unknown", s.RetentionUnknown}
	restore := period{"--restore-window", s.RestoreWindow}
	grace := period{"--purge-grace", s.PurgeGrace}
	tombstones := period{"--retention-tombstones", s.RetentionTombstones}
	leases := period{"--retention-leases", s.RetentionLeases}
	refusals := period{"--retention-refusals", s.RetentionRefusals}

	err := inBounds(upload, download, staged, superseded, unknown, restore, grace, tombstones, leases, refusals)
	err = errors.Join(err,
		longer(tombstones, superseded), longer(superseded, restore), longer(staged, upload), longer(grace, download),
		longer(unknown, restore), notShorter(unknown, staged))
	if limits != nil {
		longest := period{"--lease-ttl-max", limits.LeaseTTLMax}
		request := period{"--request-timeout", limits.RequestTimeout}
		err = errors.Join(err, inBounds(longest, request, period{"--shutdown-timeout", limits.ShutdownTimeout}),
			longer(leases, longest), longer(grace, request))
		if limits.LeaseTTLMax < time.Second {
			err = errors.Join(err, errors.New("--lease-ttl-max must be at least 1s"))
		}
	}
	for _, p := range []period{staged, superseded, unknown} {
		if p.value < shortRetention && p.value > 0 && !s.AllowShortRetention {
			err = errors.Join(err, fmt.Errorf("%s=%s is under an hour: that needs --allow-short-retention", p.flag, p.value))
		}
	}
	for _, p := range []period{upload, download} {
		if p.value%time.Second != 0 || p.value > 7*24*time.Hour {
			err = errors.Join(err, fmt.Errorf("%s=%s must be whole seconds, at most seven days: no storage signs for longer", p.flag, p.value))
		}
	}
	return asUsage(err)
}

// check refuses a brake that brakes nothing or everything, or forgets what it has let go, a time limit that ends no pass, and a schedule that cannot be read.
func (s collectorSettings) check(r retentionSettings) error {
	var err error
	if !(s.GCBrakeShare > 0 && s.GCBrakeShare <= 1) {
		err = fmt.Errorf("--gc-brake-share=%v must be above 0 and at most 1", s.GCBrakeShare)
	}
	if s.GCBrakeMin < 1 {
		err = errors.Join(err, fmt.Errorf("--gc-brake-min=%d must be at least 1", s.GCBrakeMin))
	}
	if s.GCPace < 0 {
		err = errors.Join(err, fmt.Errorf("--gc-pace=%d must be 0 or above", s.GCPace))
	}
	window := period{"--gc-brake-window", s.GCBrakeWindow}
	// What was condemned within the window is counted by its row.
	err = errors.Join(err, inBounds(window), notShorter(period{"--retention-tombstones", r.RetentionTombstones}, window))
	if s.GCTimeLimit != 0 {
		err = errors.Join(err, inBounds(period{"--gc-time-limit", s.GCTimeLimit}))
	}
	return asUsage(errors.Join(err, checkSchedule("--gc-schedule", s.GCSchedule)))
}

// check refuses a way to verify that looks at nothing.
func (s verifySettings) check() error {
	var err error
	if s.VerifyConcurrency < 1 || s.VerifyConcurrency > 1000 {
		err = fmt.Errorf("--verify-concurrency=%d must be from 1 to 1000", s.VerifyConcurrency)
	}
	if !(s.VerifyPace >= 0 && s.VerifyPace <= 1e6) {
		err = errors.Join(err, fmt.Errorf("--verify-pace=%v must be from 0 to 1000000", s.VerifyPace))
	}
	return asUsage(err)
}

// checkSchedule refuses a schedule that cannot be read.
func checkSchedule(flag, text string) error {
	if text == scheduleOff {
		return nil
	}
	if bad := schedule.Parse(text); bad != nil {
		return fmt.Errorf("%s: %w", flag, bad)
	}
	return nil
}

// check refuses a number of versions that no report may keep.
func (s reportSettings) check() error {
	if s.KeepVersions < 0 || s.KeepVersions > catalog.MostKeptVersions {
		return usageError{fmt.Errorf("--keep-versions=%d must be from 0 to %d", s.KeepVersions, catalog.MostKeptVersions)}
	}
	return nil
}

// scheduleOff is the schedule of a service that collects, or verifies, only when it is told to.
const scheduleOff = "off"

// Validate refuses a URL that cannot be read. Kong calls it.
func (s databaseSettings) Validate() error { return database.CheckURL(s.DatabaseURL) }

// check refuses addresses that cannot be read.
func (c *serveCmd) check(ctx context.Context) error {
	_, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		err = fmt.Errorf("--listen=%s must be an address such as 127.0.0.1:8080: %w", c.Listen, err)
	}
	if bad := database.CheckURL(c.MigrateDatabaseURL); bad != nil {
		err = errors.Join(err, fmt.Errorf("--migrate-database-url: %w", bad))
	}
	return asUsage(errors.Join(err, checkSchedule("--verify-schedule", c.VerifySchedule)))
}

// check refuses a pool without connections.
func (s poolSettings) check() error {
	if s.DatabasePool < 1 || s.DatabasePool > 10_000 {
		return usageError{fmt.Errorf("--database-pool=%d must be from 1 to 10000", s.DatabasePool)}
	}
	return nil
}

func inBounds(periods ...period) error {
	var err error
	for _, p := range periods {
		if p.value <= 0 || p.value > longestPeriod {
			err = errors.Join(err, fmt.Errorf("%s=%s must be above 0 and at most ten years", p.flag, p.value))
		}
	}
	return err
}

func longer(a, b period) error {
	if a.value > b.value {
		return nil
	}
	return fmt.Errorf("%s=%s must be longer than %s=%s", a.flag, a.value, b.flag, b.value)
}

func notShorter(a, b period) error {
	if a.value >= b.value {
		return nil
	}
	return fmt.Errorf("%s=%s must not be shorter than %s=%s", a.flag, a.value, b.flag, b.value)
}

// asUsage marks an error as one of the settings.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}
