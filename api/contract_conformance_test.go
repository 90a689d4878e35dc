package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/fenceline/fenceline/api"
)

// description is the OpenAPI document, loaded once.
var description = sync.OnceValue(func() *openapi3.T {
	loaded, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		panic(err)
	}
	return loaded
})

// seen is what the tests have met of the documented answers; TestMain looks at it when all have ended.
var seen = ledger{answers: map[string]bool{}}

// ledger notes answers, from tests that run side by side.
type ledger struct {
	mu      sync.Mutex
	answers map[string]bool
}

func (l *ledger) note(answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[answer] = true
}

// answerName names one documented answer: the operation, the status and the code of its problem.
func answerName(method, path string, status int, code string) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %d %s", method, path, status, code))
}

// conformance holds every answer that passes against the conventions and against the OpenAPI document, and a
// request that was accepted against what the document says of it.
type conformance struct {
	t    *testing.T
	next http.RoundTripper
}

func (c conformance) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := readAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if err := conforms(r, sent, response, body); err != nil {
		c.t.Errorf("%s %s answered %d, against the document: %v\n%s", r.Method, r.URL.Path, response.StatusCode, err, body)
	}
	checkConventions(c.t, r, response, body)
	return response, nil
}

func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer body.Close()
	return io.ReadAll(body)
}

// conforms validates an answer, and the request if it was accepted.
func conforms(r *http.Request, sent []byte, response *http.Response, body []byte) error {
	route, parameters := documented(r)
	code := codeOf(body)
	if code != "" {
		real.note(code, body)
	} else if route != nil {
		real.note(fmt.Sprintf("%s %s %d", r.Method, route.Path, response.StatusCode), body)
	}
	if general := generalAnswer(route, response.StatusCode, code); general != nil {
		route = general
	} else if route == nil {
		return fmt.Errorf("no such operation")
	} else {
		seen.note(answerName(r.Method, route.Path, response.StatusCode, code))
	}
	content := response.StatusCode/100 == 2 && strings.HasSuffix(route.Path, "/content")
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		ExcludeResponseBody:   content || route.Path == "/openapi.yaml", // bytes, which no schema describes
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		SkipSettingDefaults:   true,
	}
	request := r.Clone(context.WithoutCancel(r.Context()))
	request.Body = io.NopCloser(bytes.NewReader(sent))
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: parameters, Route: route, Options: options, QueryParams: r.URL.Query(),
	}
	if response.StatusCode/100 == 2 {
		if err := openapi3filter.ValidateRequest(request.Context(), input); err != nil {
			return fmt.Errorf("it accepts a request that is not documented: %w", err)
		}
	}
	return openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: response.StatusCode, Header: response.Header,
		Body: io.NopCloser(bytes.NewReader(body)), Options: options,
	})
}

// documented finds the operation that the document has for a request. HEAD is allowed wherever GET is.
func documented(r *http.Request) (*routers.Route, map[string]string) {
	for path, item := range description().Paths.Map() {
		parameters, matches := matchPath(path, r.URL.Path)
		operation := item.GetOperation(r.Method)
		if operation == nil && r.Method == http.MethodHead {
			operation = item.Get
		}
		if matches && operation != nil {
			return &routers.Route{
				Spec: description(), Path: path, PathItem: item, Method: r.Method, Operation: operation,
			}, parameters
		}
	}
	return nil, nil
}

// matchPath matches a path against a template. No two templates of the document match one path.
func matchPath(template, path string) (map[string]string, bool) {
	names, values := strings.Split(template, "/"), strings.Split(path, "/")
	if len(names) != len(values) {
		return nil, false
	}
	parameters := map[string]string{}
	for i, name := range names {
		if inner, ok := strings.CutPrefix(name, "{"); ok {
			parameters[strings.TrimSuffix(inner, "}")] = values[i]
		} else if name != values[i] {
			return nil, false
		}
	}
	return parameters, true
}

// generalAnswer is the description of the answers that the document gives once for all addresses.
func generalAnswer(found *routers.Route, status int, code string) *routers.Route {
	names := map[string]string{"not_found": "NotFound", "method_not_allowed": "MethodNotAllowed"}
	if found != nil && found.Operation.Responses.Status(status) == nil {
		names["body_too_large"] = "BodyTooLarge"
	}
	response := description().Components.Responses[names[code]]
	if response == nil {
		return nil
	}
	responses := openapi3.NewResponses(openapi3.WithStatus(status, response))
	return &routers.Route{Spec: description(), Operation: &openapi3.Operation{Responses: responses}}
}

func codeOf(body []byte) string {
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem) // what is no object has no code
	return problem.Code
}

// inside matches what an answer must never show of the service's inside.
var inside = regexp.MustCompile(`(?i)select |insert |relation|sqlstate|plpgsql|goroutine|\.go\b|panic|pgx|127\.0\.0\.1|/tmp/|fl_[a-z2-7]+_|x-amz`)

// checkConventions looks at what holds for every answer of every route.
func checkConventions(t *testing.T, r *http.Request, response *http.Response, body []byte) {
	t.Helper()
	where := fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, response.StatusCode)
	header := response.Header
	if header.Get("X-Request-Id") == "" {
		t.Errorf("%s: no X-Request-Id", where)
	}
	if response.StatusCode < 400 || r.Method == http.MethodHead {
		return
	}
	var p struct{ Type, Title, Detail, Code, Outcome string }
	var status struct{ Status int }
	if err := json.Unmarshal(body, &p); err != nil || json.Unmarshal(body, &status) != nil || status.Status != response.StatusCode ||
		p.Type != "urn:fenceline:problem:"+p.Code || p.Title == "" || p.Detail == "" ||
		header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: no problem document (%v): %s", where, err, body)
	}
	changes := r.Method != http.MethodGet
	if changes != (p.Outcome == "not_applied" || p.Outcome == "unknown") || response.StatusCode < 500 && p.Outcome == "unknown" {
		t.Errorf("%s: outcome %q: %s", where, p.Outcome, body)
	}
	if inside.Match(body) {
		t.Errorf("%s: the answer shows the inside of the service: %s", where, body)
	}
	waits := p.Code == "busy" || response.StatusCode == 429 || response.StatusCode == 503
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); waits != (err == nil && seconds >= 1) {
		t.Errorf("%s: Retry-After %q", where, header.Get("Retry-After"))
	}
	if response.StatusCode == 401 && len(header.Values("WWW-Authenticate")) != 2 || response.StatusCode == 405 && header.Get("Allow") == "" {
		t.Errorf("%s: headers %v", where, header)
	}
}

// TestMain looks, when every test has passed, whether every documented answer was met.
func TestMain(m *testing.M) {
	flag.Parse()
	result := m.Run()
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.bench", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			os.Exit(result) // not all of the tests were meant
		}
	}
	if missing := unseen(); result == 0 && len(missing) > 0 {
		fmt.Printf("documented answers that no test has met:\n  %s\nFAIL\n", strings.Join(missing, "\n  "))
		result = 1
	}
	if lines := invented(); result == 0 && len(lines) > 0 {
		fmt.Printf("examples that no answer was like:\n  %s\nFAIL\n", strings.Join(lines, "\n  "))
		result = 1
	}
	os.Exit(result)
}

// unseen lists the documented answers that no test has met.
func unseen() []string {
	var missing []string
	for path, item := range description().Paths.Map() {
		for method, operation := range item.Operations() {
			for _, want := range answersOf(method, path, operation) {
				if !seen.answers[want] {
					missing = append(missing, want)
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// answersOf lists the documented answers of an operation.
func answersOf(method, path string, operation *openapi3.Operation) []string {
	var all []string
	for text, response := range operation.Responses.Map() {
		status, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		problem := response.Value.Content["application/problem+json"]
		if problem == nil {
			all = append(all, answerName(method, path, status, ""))
			continue
		}
		codes := slices.Collect(maps.Keys(problem.Examples))
		if problem.Example != nil {
			example, _ := problem.Example.(map[string]any)
			codes = append(codes, fmt.Sprint(example["code"]))
		}
		for _, code := range codes {
			all = append(all, answerName(method, path, status, code))
		}
	}
	return all
}
