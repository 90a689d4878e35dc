package api_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fenceline/fenceline/api"
)

func TestAPatternIsAnIDOrABeginningOrAStar(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"*", "july", "sales.*", "a*", "a_b-c.*", strings.Repeat("a", 200)} {
		if _, err := api.ParsePattern(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"", "**", "*.july", "sa*les", "sales.**", "sales.?", ".*", "sales%", "jul\x00y", "jülich", strings.Repeat("a", 201)} {
		if _, err := api.ParsePattern(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

// Ids of few characters, the lowest and the highest among them, so that near
// misses are frequent.
const reportIDs = `[0Aaz][-.0Aaz_]{0,3}`

func TestThePatternsRangeHoldsExactlyWhatThePatternCovers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern, err := api.ParsePattern(rapid.OneOf(
			rapid.Just("*"), rapid.StringMatching(reportIDs), rapid.StringMatching(reportIDs+`\*`),
		).Draw(t, "pattern"))
		if err != nil {
			t.Fatal(err)
		}
		report := rapid.StringMatching(reportIDs).Draw(t, "report")
		r := pattern.Range()
		if inside := r.From <= report && report < r.To; inside != pattern.Covers(report) {
			t.Fatalf("pattern %q covers %q: %t; range %+v: %t", pattern, report, pattern.Covers(report), r, inside)
		}
	})
}

func TestARangeAndAPrefixHoldWhatBothHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Two letters only, so that one often begins with the other.
		pattern := api.Pattern(rapid.StringMatching(`[az]{0,2}\*|[az]{1,3}`).Draw(t, "pattern"))
		prefix := rapid.StringMatching(`[az]{0,3}`).Draw(t, "prefix")
		report := rapid.StringMatching(`[az]{1,4}`).Draw(t, "report")
		r := pattern.Range().And(api.PrefixRange(prefix))
		want := pattern.Covers(report) && strings.HasPrefix(report, prefix)
		if inside := r.From <= report && report < r.To; inside != want {
			t.Fatalf("pattern %q and prefix %q hold %q: %t; range %+v: %t", pattern, prefix, report, want, r, inside)
		}
	})
}
