package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// seriesName is a literal in the source that names a series.
var seriesName = regexp.MustCompile(`^fenceline_[a-z0-9_]+$`)

// declaredSeries reads the names of all series out of the package that declares them; of a histogram those of its
// parts, which are what an expression can name.
func declaredSeries(folder string) (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	declared := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := addSeries(declared, path, text); err != nil {
			return nil, err
		}
	}
	if len(declared) == 0 {
		return nil, fmt.Errorf("no series are declared in %s", folder)
	}
	return declared, nil
}

// addSeries adds the names that stand in one file.
func addSeries(declared map[string]bool, path string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		return err
	}
	histograms := map[ast.Node]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			if kind, ok := node.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "HistogramOpts" {
				for _, element := range node.Elts {
					if pair, ok := element.(*ast.KeyValueExpr); ok {
						histograms[pair.Value] = true
					}
				}
			}
		case *ast.BasicLit:
			name, err := strconv.Unquote(node.Value)
			if node.Kind != token.STRING || err != nil || !seriesName.MatchString(name) {
				return true
			}
			if !histograms[node] {
				declared[name] = true
				return true
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				declared[name+suffix] = true
			}
		}
		return true
	})
	return nil
}

// droppedFromAnchors is what GitHub leaves out when it makes an anchor of a heading.
var droppedFromAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors lists the anchors of a document's headings, as GitHub makes them.
func anchors(document string) []string {
	var found []string
	for line := range strings.Lines(document) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			made := droppedFromAnchors.ReplaceAllString(strings.TrimSpace(heading), "")
			found = append(found, strings.ReplaceAll(strings.ToLower(made), " ", "-"))
		}
	}
	return found
}
