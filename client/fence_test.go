package client_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

func TestFenceIsAJSONStringAndKeepsEveryDigit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]client.Fence{
		`"1.42"`:                           {Epoch: 1, Counter: 42},
		`"1.9007199254740993"`:             {Epoch: 1, Counter: 1<<53 + 1},
		`"2147483647.9223372036854775807"`: {Epoch: math.MaxInt32, Counter: math.MaxInt64},
	} {
		var got client.Fence
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != text {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
	}
}

func TestFenceHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", ".", "1", "1.", ".1", "1.0", "0.1", "01.1", "1.01", "+1.1", "1.+1", "1.-1", " 1.1", "1.1 ", "1.1.1",
		"1,1", "0x1.1", "1_0.1", "2147483648.1", "1.9223372036854775808", "١.1",
	} {
		if fence, err := client.ParseFence(text); err == nil {
			t.Errorf("%q was read as %v", text, fence)
		}
	}
}

func TestFencesCompareAsNumbersEpochFirst(t *testing.T) {
	t.Parallel()
	ascending := []client.Fence{{}, {1, 1}, {1, 9}, {1, 10}, {2, 1}, {2, 9}, {10, 1}}
	for i, f := range ascending {
		for j, g := range ascending {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := f.Compare(g); got != want {
				t.Errorf("%v.Compare(%v) = %d, want %d", f, g, got, want)
			}
		}
	}
}
