package api_test

import (
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

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
			for _, status := range []string{"400", "401", "403", "429", "500", "503"} {
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
