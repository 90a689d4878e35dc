package stack_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/stack"
)

func TestScaledPeriodsKeepTheOrderThatTheServiceChecks(t *testing.T) {
	t.Parallel()
	for retention := stack.MinRetention; retention < 100*24*time.Hour; retention += retention/7 + time.Millisecond {
		p, err := stack.Scale(retention)
		if err != nil {
			t.Fatal(err)
		}
		for _, order := range []struct {
			what         string
			long, middle time.Duration
		}{
			{"tombstones > superseded", p.RetentionTombstones, p.RetentionSuperseded},
			{"superseded > restore window", p.RetentionSuperseded, p.RestoreWindow},
			{"unknown > restore window", p.RetentionUnknown, p.RestoreWindow},
			{"unknown >= staged", p.RetentionUnknown + 1, p.RetentionStaged},
			{"staged > upload URL", p.RetentionStaged, p.UploadURLLife},
			{"purge grace > download URL", p.PurgeGrace, p.DownloadURLLife},
			{"purge grace > longest request", p.PurgeGrace, p.RequestTimeout},
			{"leases kept > longest lease", p.RetentionLeases, p.LeaseTTLMax},
		} {
			if order.long <= order.middle {
				t.Errorf("retention %v: %s: %v, %v", retention, order.what, order.long, order.middle)
			}
		}
	}
}

func TestScaledURLsLiveForWholeSeconds(t *testing.T) {
	t.Parallel()
	for retention := stack.MinRetention; retention < 3*24*time.Hour; retention += retention/7 + time.Millisecond {
		p, err := stack.Scale(retention)
		if err != nil {
			t.Fatal(err)
		}
		for what, life := range map[string]time.Duration{"upload": p.UploadURLLife, "download": p.DownloadURLLife} {
			if life < time.Second || life%time.Second != 0 {
				t.Errorf("retention %v: the %s URL lives for %v", retention, what, life)
			}
		}
	}
}

func TestAShortRetentionMakesObjectsGoWithinAFewOfIt(t *testing.T) {
	t.Parallel()
	const retention = 5 * time.Second
	p, err := stack.Scale(retention)
	if err != nil {
		t.Fatal(err)
	}
	longest := p.RetentionStaged + p.GCInterval + p.PurgeGrace + p.GCInterval
	if longest > 3*retention {
		t.Errorf("with a retention of %v an object may stay for %v", retention, longest)
	}
}

func TestARetentionTooShortForAnUploadIsRefused(t *testing.T) {
	t.Parallel()
	for _, retention := range []time.Duration{-time.Hour, 0, time.Second, stack.MinRetention - 1} {
		if _, err := stack.Scale(retention); !errors.Is(err, stack.ErrRetentionTooShort) {
			t.Errorf("Scale(%v) returned %v", retention, err)
		}
	}
}
