package contract_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/contract"
)

// walk runs cases against a server that answers everything alike.
func walk(t *testing.T, answer string, page string, cases ...contract.Case) []contract.Result {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r1")
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return contract.Run(t.Context(), &contract.Server{URL: server.URL}, contract.Rows(page), cases)
}

const page = "## T\n| answer | when |\n|---|---|\n| 200 `{\"state\":\"sealed\"}` | first |\n| 200 `{\"state\"}` | second |\n"

func get(w *contract.Walk) { w.See(w.Do(contract.Nobody, "GET", "/x", nil)) }

func TestARowThatNobodyWalksIsReported(t *testing.T) {
	t.Parallel()
	results := walk(t, `{"state":"sealed"}`, page, contract.Case{Table: "T", Row: `200 {"state"} | second`, Steps: get})
	if !results[0].NoCase || len(results[0].Failures) == 0 {
		t.Errorf("the first row: %+v", results[0])
	}
	if results[1].NoCase || len(results[1].Failures) != 0 || results[1].Seen != "200 sealed" {
		t.Errorf("the second row: %+v", results[1])
	}
}

func TestARowThatIsNotAsItSaysIsReportedWithWhatWasSeen(t *testing.T) {
	t.Parallel()
	cases := []contract.Case{
		{Table: "T", Row: `200 {"state":"sealed"}`, Steps: get},
		{Table: "T", Row: `200 {"state"} | second`, Alone: true, Steps: func(w *contract.Walk) {
			get(w)
			w.Want(w.Do(contract.Nobody, "GET", "/y", nil), 404)
			w.Fail("it went on although it could not")
		}},
	}
	results := walk(t, `{"state":"reserved"}`, page, cases...)
	for i, want := range []string{`state is "reserved", not "sealed"`, "GET /y: 200 reserved, not 404"} {
		got := strings.Join(results[i].Failures, "; ")
		if !strings.Contains(got, want) || strings.Contains(got, "went on") || results[i].Seen != "200 reserved" {
			t.Errorf("row %d: %q, seen %q", i+1, got, results[i].Seen)
		}
	}
}

func TestWhatHoldsForEveryAnswerIsCheckedOnEach(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"unavailable","status":500,"detail":"SQLSTATE 42P01","ended_at":"2026-01-01T00:00:00+01:00"}`)
	}))
	t.Cleanup(server.Close)
	row := "## T\n| answer | when |\n|---|---|\n| 503 `unavailable` | always |\n"
	steps := func(w *contract.Walk) { w.See(w.Do(contract.Nobody, "PUT", "/x", nil)) }
	results := contract.Run(t.Context(), &contract.Server{URL: server.URL}, contract.Rows(row),
		[]contract.Case{{Table: "T", Row: "503", Steps: steps}})
	got := strings.Join(results[0].Failures, "\n")
	for _, want := range []string{
		"no X-Request-Id", "no Retry-After", "Content-Type", "no title", "the member status is 500", `outcome ""`, "what is inside", "no RFC 3339 in UTC",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing is said of %q:\n%s", want, got)
		}
	}
}
