package archtest_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the product's import path.
const module = "github.com/fenceline/fenceline"

// root is the product's folder, as seen from this package's.
const root = "../.."

// file is one Go file of the product.
type file struct {
	Path   string // from the root, with slashes
	Folder string // the same for its package
	Lines  int
	Test   bool // _test.go
	Syntax *ast.File
	Set    *token.FileSet
}

// supportsTests tells the files that only tests use.
func (f file) supportsTests() bool { return f.Test || strings.HasPrefix(f.Folder, "internal/test") }

// line is where a node stands.
func (f file) line(n ast.Node) int { return f.Set.Position(n.Pos()).Line }

// imports lists the import paths of the file; those of the product without the module's.
func (f file) imports(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, spec := range f.Syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, strings.TrimPrefix(path, module+"/"))
	}
	return found
}

// goFiles reads every Go file of the product's module.
func goFiles(t testing.TB) []file {
	t.Helper()
	var found []file
	walk(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, file{
			Path: path, Folder: filepath.ToSlash(filepath.Dir(path)), Lines: bytes.Count(text, []byte("\n")),
			Test: strings.HasSuffix(path, "_test.go"), Syntax: syntax, Set: set,
		})
	})
	if len(found) < 100 {
		t.Fatalf("only %d Go files were found", len(found))
	}
	return found
}

// walk reads every file of the product that is kept in version control, and calls do with its path from the root.
func walk(t testing.TB, do func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		inside, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case inside == ".":
			return nil
		case entry.IsDir() && (name == "bin" || name == "testdata" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || !readable(name):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(filepath.ToSlash(inside), text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// readable tells the files that rules are about.
func readable(name string) bool {
	return strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".sql")
}
