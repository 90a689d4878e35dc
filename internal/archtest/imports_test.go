package archtest_test

import (
	"slices"
	"strings"
	"testing"
)

// rule says of a package, or of all that are below it, what it may not import. A name stands for itself and for all
// that is below it.
type rule struct {
	of    string
	never []string
	why   string
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	rules := []rule{
		{"lease", []string{"catalog", "staging", "gc", "api"}, "what must happen in one transaction happens in one SQL function"},
		{"catalog", []string{"lease", "staging", "gc", "api"}, "what must happen in one transaction happens in one SQL function"},
		{"staging", []string{"lease", "catalog", "gc", "api"}, "what must happen in one transaction happens in one SQL function"},
		{"gc", []string{"lease", "api"}, "the collector knows what it collects, and nobody who asks for it"},
		{"internal/verify", []string{"lease", "gc", "api"}, "it looks at what is shown, and knows nobody who asks for it"},
		{"migrations", []string{"lease", "catalog", "staging", "gc", "api", "client", "internal/fencing", "internal/service", "internal/check", "internal/stack"}, "the schema stands below everything but the pool"},
		{"internal/fencing", []string{module, "lease", "catalog", "staging", "gc", "api", "client", "migrations", "internal"}, "the shared words know nobody"},
		{"internal/database", []string{"lease", "catalog", "staging", "gc", "api", "client", "migrations"}, "it serves those who decide"},
		{"internal/metrics", []string{"lease", "catalog", "staging", "gc", "api", "client", "migrations", "internal"}, "it counts what it is told, and asks through functions"},
		{"client", []string{"lease", "catalog", "staging", "gc", "api", "migrations", "internal", "cmd"}, "the client knows the wire alone"},
		{"internal/contract", []string{"lease", "catalog", "staging", "gc", "api", "client", "migrations", "internal", "cmd"}, "the walker knows the wire and the page alone"},
		{"api", []string{"client", "cmd", "internal/service"}, "cmd puts the parts together"},
	}
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, r := range rules {
			if f.Test || !within(f.Folder, r.of) {
				continue
			}
			seen[r.of] = true
			for _, path := range f.imports(t) {
				if slices.ContainsFunc(r.never, func(n string) bool { return within(path, n) }) {
					t.Errorf("%s imports %s: %s", f.Path, path, r.why)
				}
			}
		}
	}
	for _, r := range rules {
		if !seen[r.of] {
			t.Errorf("there is no package %s any more: the rule about it holds nothing", r.of)
		}
	}
}

func TestTheClientNeedsTheStandardLibraryAlone(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.Test || !within(f.Folder, "client") {
			continue
		}
		for _, path := range f.imports(t) {
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && !within(path, "golang.org/x") {
				t.Errorf("%s imports %s", f.Path, path)
			}
		}
	}
}

func TestEachPartIsKnownToOnePackageAlone(t *testing.T) {
	t.Parallel()
	// Where a part may be imported; and tests and what helps them may use it too, where that is said.
	for _, c := range []struct {
		part    string
		in      []string
		inTests bool
	}{
		{"github.com/aws/aws-sdk-go-v2", []string{"staging", "cmd"}, true},
		{"github.com/aws/smithy-go", []string{"staging", "cmd"}, true},
		{"github.com/labstack/echo", []string{"api"}, false},
		{"github.com/pressly/goose", []string{"migrations"}, false},
		{"github.com/robfig/cron", []string{"internal/schedule"}, false},
		{"github.com/alecthomas/kong", []string{"cmd"}, false},
		{"github.com/prometheus", []string{"internal/metrics", "tools"}, true},
	} {
		used := false
		for _, f := range goFiles(t) {
			allowed := slices.ContainsFunc(c.in, func(name string) bool { return within(f.Folder, name) }) || c.inTests && f.supportsTests()
			for _, path := range f.imports(t) {
				if !within(path, c.part) {
					continue
				}
				used = true
				if !allowed {
					t.Errorf("%s imports %s, which only %v may", f.Path, path, c.in)
				}
			}
		}
		if !used && c.part != "github.com/aws/smithy-go" {
			t.Errorf("nothing imports %s any more: the rule about it holds nothing", c.part)
		}
	}
}

func TestTheProductCarriesNoTestHelpers(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.supportsTests() {
			continue
		}
		for _, path := range f.imports(t) {
			if within(path, "testing") || strings.HasPrefix(path, "internal/test") ||
				within(path, "github.com/google/go-cmp") || within(path, "pgregory.net/rapid") || path == "net/http/httptest" {
				t.Errorf("%s imports %s", f.Path, path)
			}
		}
	}
}

// within tells whether an import path or folder is the named one, or below it.
func within(path, name string) bool { return path == name || strings.HasPrefix(path, name+"/") }
