package fencing_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fenceline/fenceline/internal/fencing"
)

func TestAFenceIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := fencing.Fence{
			Epoch:   rapid.Int32Min(1).Draw(t, "epoch"),
			Counter: rapid.Int64Min(1).Draw(t, "counter"),
		}
		got, err := fencing.ParseFence(f.String())
		if err != nil || got != f {
			t.Errorf("%s was read as %s, %v", f, got, err)
		}
	})
}

func TestOneFenceHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", ".", "1", "1.", ".1", "0.1", "1.0", "-1.1", "1.-1", "+1.1", "1.+1", "01.1", "1.01", " 1.1", "1.1 ", "1.1.1",
		"1,1", "1.1e3", "0x1.1", "1_0.1", "2147483648.1", "1.9223372036854775808", "١.١", "1.1\n",
	} {
		if f, err := fencing.ParseFence(text); !errors.Is(err, fencing.ErrInvalidFence) {
			t.Errorf("%q was read as %s, %v", text, f, err)
		}
	}
}

func TestFencesAreComparedAsNumbersAndTheEpochFirst(t *testing.T) {
	t.Parallel()
	ascending := []fencing.Fence{
		{}, {1, 1}, {1, 2}, {1, 9}, {1, 10}, {1, 1 << 53}, {1, 1<<53 + 1}, {1, math.MaxInt64}, {2, 1}, {10, 1}, {math.MaxInt32, 1},
	}
	for i, f := range ascending {
		for j, g := range ascending {
			if got := f.Compare(g); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s compared with %s is %d", f, g, got)
			}
		}
		if f.IsZero() != (i == 0) {
			t.Errorf("%s is zero: %v", f, f.IsZero())
		}
	}
}

func TestAFenceIsAStringInJSONSoThatNoDigitIsLost(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(fencing.Fence{Epoch: 1, Counter: 1<<53 + 1})
	if want := `"1.9007199254740993"`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestIdsAreOneSegmentOfAURLAndOfAKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		longest int
		parse   func(string) error
	}{
		{"report", 200, func(s string) error { _, err := fencing.ParseReportID(s); return err }},
		{"lease", 64, func(s string) error { _, err := fencing.ParseLeaseID(s); return err }},
		{"object", 128, func(s string) error { _, err := fencing.ParseObjectID(s); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, good := range []string{"a", "7", "july.csv", "sales.2026.july", "A_b-c.D", strings.Repeat("x", c.longest), "a..b"} {
				if err := c.parse(good); err != nil {
					t.Errorf("%q: %v", good, err)
				}
			}
			for _, bad := range []string{
				"", ".", "..", ".a", "-a", "_a", "a/b", "a b", "a%2Fb", "ä", "a\x00", "a\n", "a*", `a\b`, "a?", "a#", strings.Repeat("x", c.longest+1),
			} {
				if err := c.parse(bad); !errors.Is(err, fencing.ErrInvalidID) {
					t.Errorf("%q: %v, want it refused", bad, err)
				}
			}
		})
	}
}
