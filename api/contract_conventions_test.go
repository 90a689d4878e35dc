package api_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
)

// takesBody tells whether a route reads a body.
func takesBody(r api.Route) bool { return r.Mutates }

func TestEveryRouteRefusesAParameterThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	for _, r := range api.Routes() {
		for _, query := range []string{"?nonsense=1", "?nonsense"} {
			got := w.Do(t, r.Method, address(r, "july")+query, nil, anyRequest...).Refused(t, 400, "invalid_request")
			equal(t, got, doc{"field": "nonsense"})
			if r.Method == http.MethodGet {
				w.Do(t, http.MethodHead, address(r, "july")+query, nil).Want(t, 400)
			}
		}
		if strings.Contains(r.Path, ":report") {
			equal(t, w.Do(t, r.Method, address(r, "-july"), nil, anyRequest...).Refused(t, 400, "invalid_request"), doc{"field": "report"})
		}
	}
}

func TestEveryBodyIsBoundedAndOfJSON(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	w.grant(t, "july", "a7")
	for _, r := range api.Routes() {
		if !takesBody(r) {
			continue
		}
		limit := 64 << 10
		if strings.HasSuffix(r.Path, "/seal") { // which may name 10 000 parts
			limit = 2 << 20
		}
		spaces := strings.Repeat(" ", limit)
		path := address(r, "july")
		w.Do(t, r.Method, path, raw(spaces+"{"), anyRequest...).Refused(t, 413, "body_too_large")
		chunked := struct{ io.Reader }{strings.NewReader(spaces + "{")} // of unknown length
		w.Do(t, r.Method, path, io.Reader(chunked), anyRequest...).Refused(t, 413, "body_too_large")

		largest := `{"nonsense":"` + strings.Repeat("x", limit-15) + `"}` // exactly so many are read
		if len(largest) != limit {
			t.Fatalf("%d bytes", len(largest))
		}
		equal(t, w.Do(t, r.Method, path, raw(largest), anyRequest...).Refused(t, 400, "invalid_request"), doc{"field": "nonsense"})

		for _, headers := range [][]string{
			{"Content-Type", ""},
			{"Content-Type", "text/json"},
			{"Content-Type", "application/x-www-form-urlencoded"},
			{"Content-Type", "application/problem+json"},
			{"Content-Encoding", "gzip"},
		} {
			w.Do(t, r.Method, path, raw("{}"), append(headers, anyRequest...)...).Refused(t, 415, "unsupported_media_type")
		}
		for body, field := range map[string]string{
			`{"a":1,"a":1}`: "a", `{`: "body", `[]`: "body", `{} {}`: "body", `null`: "body", `{"":1}`: "", "{\"\xff\":1}": "body",
		} {
			got := w.Do(t, r.Method, path, raw(body), anyRequest...).Refused(t, 400, "invalid_request")
			if body == `{"a":1,"a":1}` { // unknown and repeated: either may be told
				field = got.String(t, "field")
			}
			equal(t, got, doc{"field": field})
		}
	}
}

func TestABodyOfAReadIsBoundedAndIgnored(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.Do(t, "GET", "/v1/reports", raw(strings.Repeat(" ", 64<<10+1))).Refused(t, 413, "body_too_large")
	w.Do(t, "GET", "/v1/reports", raw("x"), "Content-Type", "text/plain").Want(t, 200)
}

func TestAnAddressKnowsItsMethodsAlone(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	allowed := map[string]map[string]bool{}
	for _, r := range api.Routes() {
		path := address(r, "july")
		if allowed[path] == nil {
			allowed[path] = map[string]bool{}
		}
		allowed[path][r.Method] = true
		if r.Method == http.MethodGet {
			allowed[path][http.MethodHead] = true
		}
	}
	for path, methods := range allowed {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE"} {
			if methods[method] {
				continue
			}
			got := w.Do(t, method, path, nil)
			got.Refused(t, 405, "method_not_allowed")
			for known := range methods {
				if !strings.Contains(got.Header.Get("Allow"), known) {
					t.Errorf("%s %s: Allow %q lacks %s", method, path, got.Header.Get("Allow"), known)
				}
			}
		}
	}
	for _, nowhere := range []string{
		"/", "/v1", "/v1/", "/v1/reports/", "/v1/report", "/v2/reports", "/v1/reports/july/", "/v1/reports/july/objects/1.1",
		"/v1/reports/july/leases/a7/renew/now", "/livez/x",
	} {
		for _, method := range []string{"GET", "POST"} {
			w.DoAs(t, "", method, nowhere, nil).Refused(t, 404, "not_found")
		}
	}
}

func TestAnAnswerCarriesTheRequestIDThatItsLogLineHas(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for i, path := range []string{"/livez", "/nowhere", "/v1/reports", july} {
		id := "request-" + string(rune('a'+i))
		if got := w.get(t, path, "X-Request-Id", id); got.Header.Get("X-Request-Id") != id {
			t.Errorf("%s: %v", path, got.Header)
		}
		if !strings.Contains(w.log.String(), `"request_id":"`+id+`"`) {
			t.Errorf("%s: no line of %s in the log", path, id)
		}
	}
}

func TestTimesAreInUTCWhateverTheSessionsZone(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.DB.Exec(t, "ALTER ROLE fenceline_service IN DATABASE "+databaseName(t, w)+" SET timezone = 'Pacific/Kiritimati'")
	w.Pool.Reset()
	fence := w.published(t, "july", "hello", nil)
	moment := regexp.MustCompile(`"([a-z]+_at)":"([^"]+)"`)
	met := map[string]bool{}
	for _, path := range []string{july, july + "/publications/1", july + "/leases/a7", objectPath("july", fence, "july.csv"), "/v1/epoch"} {
		for _, found := range moment.FindAllStringSubmatch(string(w.Do(t, "GET", path, nil).Want(t, 200).Body), -1) {
			met[found[1]] = true
			at, err := time.Parse(time.RFC3339Nano, found[2])
			if err != nil || !strings.HasSuffix(found[2], "Z") || time.Since(at).Abs() > time.Minute {
				t.Errorf("%s: %s %s (%v)", path, found[1], found[2], err)
			}
		}
	}
	for _, name := range []string{"published_at", "granted_at", "reserved_at", "sealed_at", "began_at"} {
		if !met[name] {
			t.Errorf("no %s was met", name)
		}
	}
}
