package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/client"
	main "github.com/fenceline/fenceline/cmd/fenceline"
)

func TestExplainTellsWhatTheStorageSaidOfADeleteThatFailed(t *testing.T) {
	t.Parallel()
	retry := time.Date(2026, 8, 1, 4, 0, 0, 0, time.UTC)
	object := client.ObjectRecord{
		ObjectID: "july.csv", Fence: client.Fence{Epoch: 1, Counter: 42}, State: "condemned", CondemnedBecause: "superseded",
		PurgeAfter: new(retry.Add(-time.Hour)), PurgeAttempts: 3, PurgeError: "AccessDenied:\nAccess Denied", RetryAt: &retry,
	}
	for _, stuck := range []bool{false, true} {
		object.Stuck = stuck
		got := main.Explained(&object)
		for _, text := range []string{"1.42/july.csv is condemned.", "superseded", "refused to delete them 3 times", "2026-08-01T04:00:00Z", "AccessDenied: Access Denied"} {
			if !strings.Contains(got, text) {
				t.Errorf("%q does not say %q", got, text)
			}
		}
		if strings.Contains(got, "stuck") != stuck || strings.Contains(got, "\n") {
			t.Errorf("of an object whose being stuck is %t it says %q", stuck, got)
		}
	}
}
