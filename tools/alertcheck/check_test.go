package main_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	main "github.com/fenceline/fenceline/tools/alertcheck"
)

// sound is a file without a mistake. Each test makes one.
const sound = `
groups:
  - name: one
    rules:
      - alert: Late
        expr: sum(increase(fenceline_late_total{code="stale"}[10m])) > 0 and on () fenceline_up == 1
        labels: {severity: ticket}
        annotations: {summary: "late on {{ $labels.instance }}", runbook: docs/run.md#a-late-one}
      - alert: Slow
        expr: histogram_quantile(0.9, rate(fenceline_time_seconds_bucket[5m])) > 1
        for: 5m
        labels: {severity: page}
        annotations: {summary: slow, runbook: "docs/run.md#its-slow-says-who"}
`

const source = `package metrics
func declare() {
	gauge("fenceline_up", "Whether fenceline_imagined_total is up.")
	counters(Opts{Name: "fenceline_late_total", Help: "x"})
	NewHistogram(prometheus.HistogramOpts{Name: "fenceline_time_seconds", Help: "x"})
}`

const runbook = "# Run\n\n## A late one\n\n### It's slow: says who?\n"

func mistakesIn(t *testing.T, rules string) []string {
	t.Helper()
	declared := map[string]bool{}
	if err := main.AddSeries(declared, "metrics.go", []byte(source)); err != nil {
		t.Fatal(err)
	}
	return main.Check([]byte(rules), declared, func(document string) (string, error) {
		if document != "docs/run.md" {
			return "", errors.New("there is no such document")
		}
		return runbook, nil
	})
}

func TestSoundRulesHaveNoMistakes(t *testing.T) {
	t.Parallel()
	if mistakes := mistakesIn(t, sound); len(mistakes) > 0 {
		t.Errorf("mistakes in sound rules: %q", mistakes)
	}
}

func TestEachKindOfMistakeIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"no YAML":                           {"groups:", "groups: [", "Prometheus refuses it"},
		"a mistyped key":                    {"for: 5m", "fore: 5m", "Prometheus refuses it"},
		"an expression that is none":        {"[10m])) > 0", "[10m]) > 0", "Prometheus refuses it"},
		"a template that is none":           {"{{ $labels.instance }}", "{{ $labels.instance", "Prometheus refuses it"},
		"a series that is not declared":     {"fenceline_up == 1", "fenceline_imagined_total == 1", `no series "fenceline_imagined_total"`},
		"a series that is named by a label": {"fenceline_up == 1", `{__name__="fenceline_down"} == 1`, `no series "fenceline_down"`},
		"a series of something else":        {"fenceline_up == 1", "pg_up == 1", `no series "pg_up"`},
		"a histogram as a whole":            {"fenceline_time_seconds_bucket", "fenceline_time_seconds", `no series "fenceline_time_seconds"`},
		"parts of what is no histogram":     {"fenceline_up == 1", "fenceline_up_count == 1", `no series "fenceline_up_count"`},
		"a section that is not there":       {"#a-late-one", "#a-later-one", "has no section #a-later-one"},
		"a document that is not there":      {"docs/run.md#a-late-one", "docs/ran.md#a-late-one", "no such document"},
		"no runbook":                        {", runbook: docs/run.md#a-late-one", "", "names no section"},
		"a runbook as a whole":              {"docs/run.md#a-late-one", "docs/run.md", "names no section"},
		"no summary":                        {"summary: slow, ", "", "no summary"},
		"no severity":                       {"{severity: page}", "{}", "neither page nor ticket"},
		"two of one name":                   {"alert: Slow", "alert: Late", "two of this name"},
		"no rules":                          {sound, "groups: []", "no alerts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(sound, c.old) {
				t.Fatalf("the sound rules have no %q", c.old)
			}
			mistakes := mistakesIn(t, strings.Replace(sound, c.old, c.new, 1))
			if !slices.ContainsFunc(mistakes, func(m string) bool { return strings.Contains(m, c.want) }) {
				t.Errorf("none of %q says %q", mistakes, c.want)
			}
		})
	}
}

func TestTheRepositorysOwnSeriesAreFound(t *testing.T) {
	t.Parallel()
	if _, err := main.CheckRepository("../.."); err != nil {
		t.Error(err)
	}
	if _, err := main.CheckRepository("testdata/nowhere"); err == nil {
		t.Error("a repository that is not there was checked")
	}
}
