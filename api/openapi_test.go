package api_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/api"
)

// document loads the description and checks it, with every example against its
// schema.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheOpenAPIDocumentIsValidAndIsServed(t *testing.T) {
	t.Parallel()
	if doc := document(t); !doc.IsOpenAPI31OrLater() {
		t.Errorf("version %s, want 3.1", doc.OpenAPI)
	}
	got := ask(t, start(t, api.Config{}), http.MethodGet, "/openapi.yaml", "")
	if got.Status != 200 || got.Body != string(api.OpenAPI()) || got.Header.Get("Content-Type") != "application/yaml" {
		t.Errorf("served: %d, %d bytes, %q", got.Status, len(got.Body), got.Header.Get("Content-Type"))
	}
}

func TestTheDocumentDescribesTheRoutesThatAreServedAndNoOthers(t *testing.T) {
	t.Parallel()
	parameter := regexp.MustCompile(`:([a-z_]+)`)
	served := map[string]bool{}
	for _, r := range api.Routes() {
		served[r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}")] = true
	}
	described := map[string]bool{}
	for path, item := range document(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if method != http.MethodHead { // it is served wherever GET is
				described[method+" "+path] = true
			}
			checkParameters(t, method, path, operation)
		}
	}
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("routes (-served +described):\n%s", diff)
	}
}

// checkParameters compares the query parameters and the role of an operation with its route's.
func checkParameters(t *testing.T, method, path string, operation *openapi3.Operation) {
	t.Helper()
	var described []string
	for _, p := range operation.Parameters {
		if p.Value.In == openapi3.ParameterInQuery {
			described = append(described, p.Value.Name)
		}
	}
	for _, r := range api.Routes() {
		if r.Method != method || strings.NewReplacer("{", ":", "}", "").Replace(path) != r.Path {
			continue
		}
		known := slices.Sorted(slices.Values(r.Query))
		slices.Sort(described)
		if !slices.Equal(known, described) {
			t.Errorf("%s %s knows the parameters %q, described are %q", method, path, known, described)
		}
		if r.Role != "" && !strings.Contains(operation.Description, "Needs the role `"+string(r.Role)+"`.") {
			t.Errorf("%s %s: its role, %s, is not described", method, path, r.Role)
		}
	}
}

func TestEveryOperationDescribesItsErrorsAndItsHeaders(t *testing.T) {
	t.Parallel()
	for path, item := range document(t).Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if response.Value.Headers["X-Request-Id"] == nil {
					t.Errorf("%s %s: %s without X-Request-Id", method, path, status)
				}
				if (status == "503" || status == "429") && method != http.MethodHead && response.Value.Headers["Retry-After"] == nil {
					t.Errorf("%s %s: %s without Retry-After", method, path, status)
				}
			}
			if operation.Security != nil && len(*operation.Security) == 0 {
				continue // open to all
			}
			for _, status := range []string{"400", "401", "403", "500", "503"} {
				if status == "403" && path == "/v1/reports" {
					continue // every key may list: it is shown what its pattern covers
				}
				if operation.Responses.Value(status) == nil {
					t.Errorf("%s %s: no %s", method, path, status)
				}
			}
		}
	}
}

// The examples of errors are what the service sends: with an outcome where
// something was to change, without one where nothing was.
func TestTheErrorsOfAChangeShowItsOutcome(t *testing.T) {
	t.Parallel()
	for path, item := range document(t).Paths.Map() {
		for method, operation := range item.Operations() {
			changes := method != http.MethodGet && method != http.MethodHead
			for status, response := range operation.Responses.Map() {
				media := response.Value.Content["application/problem+json"]
				if media == nil {
					continue
				}
				for name, example := range media.Examples {
					document, _ := example.Value.Value.(map[string]any)
					if _, tells := document["outcome"]; tells != changes {
						t.Errorf("%s %s %s: example %s tells an outcome: %t", method, path, status, name, tells)
					}
				}
			}
		}
	}
}
