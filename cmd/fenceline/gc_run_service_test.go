package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testproxy"
	"github.com/fenceline/fenceline/internal/testservice"
)

// parsed are the lines of JSON of an output.
func parsed(t *testing.T, output string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(output) {
		var value map[string]any
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			t.Fatalf("%q is no line of JSON: %v", line, err)
		}
		lines = append(lines, value)
	}
	return lines
}

// document decodes what the service answers to a GET.
func document(t *testing.T, s *testservice.Service, path string) (value map[string]any) {
	t.Helper()
	if err := json.Unmarshal(s.Do(t, "GET", path, nil).Want(t, 200).Body, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// without is a document without some of its members.
func without(value map[string]any, names ...string) map[string]any {
	value = maps.Clone(value)
	for _, name := range names {
		delete(value, name)
	}
	return value
}

func TestAPassInJSONShowsWhatTheServiceShowsOfIt(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings := leftovers(t, s, "left.csv")
	for i, flags := range [][]string{{"--dry-run"}, {}} {
		run := fmt.Sprintf("/v1/gc/runs/%d", i+1)
		got := fenceline(t, settings, append([]string{"gc", "run", "--json"}, flags...)...).ends(t, 0)
		if got.Remark != "" {
			t.Errorf("it remarks %q", got.Remark)
		}
		lines := parsed(t, got.Out)
		last := lines[len(lines)-1]
		if diff := cmp.Diff(document(t, s, run), without(last, "type")); diff != "" || last["type"] != "run" {
			t.Errorf("the last line is of type %v, and not what GET %s answers (-want +got):\n%s", last["type"], run, diff)
		}
		var objects, wanted []any
		phases := map[any]bool{}
		for _, line := range lines[:len(lines)-1] {
			switch line["type"] {
			case "object":
				objects = append(objects, without(line, "type"))
			case "progress":
				phases[line["phase"]] = true
				for _, name := range []string{"done", "total", "per_second", "remaining_ms"} {
					if _, ok := line[name]; !ok {
						t.Errorf("%v does not tell %s", line, name)
					}
				}
			default:
				t.Errorf("a line of type %v", line["type"])
			}
		}
		for _, entry := range document(t, s, run+"/objects")["items"].([]any) {
			wanted = append(wanted, without(entry.(map[string]any), "at"))
		}
		if diff := cmp.Diff(wanted, objects); diff != "" || len(objects) != 2 {
			t.Errorf("the objects, and those of the service (-want +got):\n%s", diff)
		}
		if !phases["condemn"] || !phases["purge"] || !phases["forget"] {
			t.Errorf("progress is told of %v", phases)
		}
	}
}

func TestAQuietPassPrintsItsSummaryAlone(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings := leftovers(t, s, "left.csv")
	got := fenceline(t, settings, "gc", "run", "--quiet").ends(t, 0, "run 1: condemned 1 (5 bytes)")
	if got.Remark != "" || strings.Count(got.Out, "\n") != 1 {
		t.Errorf("it prints %q and %q", got.Out, got.Remark)
	}
	lines := parsed(t, fenceline(t, settings, "gc", "run", "--quiet", "--json").ends(t, 0).Out)
	if len(lines) != 1 || lines[0]["type"] != "run" {
		t.Errorf("in JSON it prints %v", lines)
	}
}

// slowly are the settings of `gc run` whose deletes are kept back by the proxy from now on.
func slowly(t *testing.T, settings []string, storage *testbucket.Bucket) ([]string, *testproxy.Proxy) {
	t.Helper()
	p := testproxy.New(t, "tcp", storage.Address(t))
	p.Hold("?delete")
	return append(settings, "FENCELINE_S3_ENDPOINT=http://"+p.Addr), p
}

func TestWithoutATerminalLinesTellHowFarAPassIs(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings, p := slowly(t, leftovers(t, s, "left.csv"), s.Storage)
	r := start(t, settings, "gc", "run", "--progress-every=10ms")
	p.AwaitHeld(t)
	await(t, "the purge is told of", func() bool { return strings.Contains(r.remark(), "\npurge: 0") })
	p.LetGo()
	r.ends(t, 0, "condemn: 1", "forget: 0")
	if strings.ContainsAny(r.remark(), "\r\x1b") {
		t.Errorf("what is no terminal is written to as if it were one: %q", r.remark())
	}
	ended := 0
	for line := range strings.Lines(r.remark()) {
		if strings.HasSuffix(line, ", ended\n") {
			ended++
		}
	}
	if ended != 4 {
		t.Errorf("%d phases are said to have ended, want 4: %q", ended, r.remark())
	}
	if !strings.Contains(r.out(), "deleted reports/july/1.1/discarded.csv") {
		t.Errorf("the output is %q", r.out())
	}
}

func TestAnInterruptedPassSaysThatTheNextGoesOn(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings := leftovers(t, s, "left.csv")
	slow, p := slowly(t, settings, s.Storage)
	r := start(t, slow, "gc", "run", "--json")
	p.AwaitHeld(t)
	r.signal(t, syscall.SIGINT)
	r.ends(t, 130, "fenceline: interrupted: ", "the next pass goes on from there")
	lines := parsed(t, r.out())
	if last := lines[len(lines)-1]; last["type"] != "run" || last["finished_at"] == nil || last["outcome"] != "stopped" {
		t.Errorf("the last line is %v, want the record of a run that was stopped", last)
	}
	p.Refuse()
	fenceline(t, settings, "gc", "run").ends(t, 0, "deleted reports/july/1.1/discarded.csv")
	if left := testdb.Value[int64](t, s.DB, "SELECT count(*) FROM gc_run WHERE finished_at IS NULL"); left != 0 {
		t.Errorf("%d passes are still on record as under way", left)
	}
}
