package archtest_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	documents := map[string]string{}
	walk(t, func(path string, text []byte) {
		if strings.HasSuffix(path, ".md") {
			documents[path] = string(text)
		}
	})
	if len(documents) == 0 {
		t.Fatal("no documents were found")
	}
	for name, text := range documents {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
				t.Errorf("%s links to %s, which is not there", name, match[1])
				continue
			}
			if body, ok := documents[file]; ok && anchor != "" && !hasHeading(body, anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", name, match[1], file)
			}
		}
	}
}

func TestTestsThatTheDocumentsNameAreThere(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	declared := regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
	there, documents := map[string]bool{}, map[string]string{}
	walk(t, func(path string, text []byte) {
		switch {
		case strings.HasSuffix(path, "_test.go"):
			for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
				there[match[1]] = true
			}
		case strings.HasSuffix(path, ".md"):
			documents[path] = string(text)
		}
	})
	found := 0
	for path, text := range documents {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			found++
			if !there[match[1]] {
				t.Errorf("%s names %s, which is not there", path, match[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d tests are named: are they looked for in the right way?", found)
	}
}

// hasHeading tells whether a document has the heading that an anchor names, as GitHub makes anchors.
func hasHeading(document, anchor string) bool {
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for line := range strings.Lines(document) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			made := strings.ReplaceAll(strings.ToLower(dropped.ReplaceAllString(strings.TrimSpace(heading), "")), " ", "-")
			if made == anchor {
				return true
			}
		}
	}
	return false
}
