package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// real is what the service has really answered, for the examples of the document to be held against.
var real = resemblances{likes: map[string]map[string]bool{}}

// resemblances are the forms of answers, by the answer that is documented, from tests that run side by side.
type resemblances struct {
	mu    sync.Mutex
	likes map[string]map[string]bool
}

// note keeps the form of a real answer.
func (r *resemblances) note(answer string, body []byte) {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return // no JSON, so nothing that an example shows
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.likes[answer] == nil {
		r.likes[answer] = map[string]bool{}
	}
	r.likes[answer][form(value)] = true
}

// form is what an example must have in common with an answer: the members at every depth, and of a problem every
// word. Members whose names are the client's choice are not told apart.
func form(value any) string {
	switch v := value.(type) {
	case map[string]any:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch {
			case name == "metadata" || name == "headers":
				members = append(members, name)
			case v["code"] != nil && slices.Contains([]string{"title", "status", "detail", "code", "outcome", "type", "field"}, name):
				members = append(members, fmt.Sprintf("%s=%v", name, v[name]))
			default:
				members = append(members, name+form(v[name]))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		if len(v) > 0 {
			return "[" + form(v[0]) + "]"
		}
		return "[]"
	}
	return ""
}

// invented lists the examples of the document that no answer was like.
func invented() []string {
	var lines []string
	for path, item := range description().Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				for media, content := range response.Value.Content {
					lines = append(lines, inventedIn(method+" "+path+" "+status, media, content)...)
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func inventedIn(answer, media string, content *openapi3.MediaType) []string {
	examples := map[string]any{"": content.Example}
	for name, e := range content.Examples {
		examples[name] = e.Value.Value
	}
	var lines []string
	for _, example := range examples {
		where := answer
		problem, _ := example.(map[string]any)
		if example == nil || !strings.HasSuffix(media, "json") {
			continue
		}
		if media == "application/problem+json" {
			where = fmt.Sprint(problem["code"]) // said in the same words wherever it is met
		}
		if got := form(example); !real.likes[where][got] {
			lines = append(lines, fmt.Sprintf("%s: %s\n    was: %s", where, got, strings.Join(slices.Sorted(maps.Keys(real.likes[where])), "\n         ")))
		}
	}
	return lines
}
