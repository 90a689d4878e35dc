package archtest_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	longestFile     = 400
	longestFunction = 60
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	comments := map[string]string{}
	for _, f := range goFiles(t) {
		if f.Test {
			continue
		}
		comments[f.Folder] += f.Syntax.Doc.Text()
	}
	for folder, comment := range comments {
		name := folder[strings.LastIndex(folder, "/")+1:]
		if !strings.HasPrefix(comment, "Package "+name+" ") && !strings.HasPrefix(comment, "Command "+name+" ") {
			t.Errorf("%s has no comment that begins with its name: %.60q", folder, comment)
		}
	}
}

func TestEveryExportedNameHasASentence(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.Test {
			continue
		}
		for _, declaration := range f.Syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc.Text() == "" {
					t.Errorf("%s:%d: %s has no comment", f.Path, f.line(d), d.Name)
				}
			case *ast.GenDecl:
				var comments string // of the group: one of them may be about several names
				for _, spec := range d.Specs {
					_, comment := describe(spec)
					comments += comment
				}
				for _, spec := range d.Specs {
					name, comment := describe(spec)
					if ast.IsExported(name) && d.Doc.Text()+comment == "" && !strings.Contains(comments, name) {
						t.Errorf("%s:%d: %s has no comment", f.Path, f.line(spec), name)
					}
				}
			}
		}
	}
}

// exportedReceiver tells whether a function is none of an unexported type's methods.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	kind := d.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr:
			kind = k.X
		case *ast.Ident:
			return k.IsExported()
		default:
			return true
		}
	}
}

// describe gives the first name of a declaration, and the comments on it alone.
func describe(spec ast.Spec) (name, comment string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Name.Name, s.Doc.Text() + s.Comment.Text()
	case *ast.ValueSpec:
		return s.Names[0].Name, s.Doc.Text() + s.Comment.Text()
	default:
		return "", ""
	}
}

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.Test {
			continue
		}
		if f.Lines > longestFile {
			t.Errorf("%s has %d lines, more than %d", f.Path, f.Lines, longestFile)
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				if lines := f.Set.Position(n.End()).Line - f.line(n) + 1; lines > longestFunction {
					t.Errorf("%s:%d: a function of %d lines, more than %d", f.Path, f.line(n), lines, longestFunction)
				}
			}
			return true
		})
	}
}

func TestNothingHappensBeforeMain(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, declaration := range f.Syntax.Decls {
			if d, ok := declaration.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				t.Errorf("%s:%d: an init function", f.Path, f.line(d))
			}
		}
	}
}

func TestTestsNeitherSleepNorSkip(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		// In its bubble time stands still until all wait, and to sleep there is to say what time it is.
		bubble := slices.Contains(f.imports(t), "testing/synctest")
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := s.X.(*ast.Ident)
			switch {
			case x == nil:
			case x.Name == "time" && s.Sel.Name == "Sleep" && !bubble:
				t.Errorf("%s:%d: time.Sleep is no synchronisation: wait for what is to happen", f.Path, f.line(n))
			case f.supportsTests() && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") && (x.Name == "t" || x.Name == "b" || x.Name == "tb"):
				t.Errorf("%s:%d: a test that skips itself says nothing: fail where a server is missing", f.Path, f.line(n))
			}
			return true
		})
	}
}

func TestNoContextIsKeptInAStruct(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		// That of a capability is of no call: it is made with the capability, and ends with it.
		if f.supportsTests() || f.Path == "client/capability.go" {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				if kind, ok := field.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Context" {
					if x, ok := kind.X.(*ast.Ident); ok && x.Name == "context" {
						t.Errorf("%s:%d: a context kept in a struct outlives the call that it is of", f.Path, f.line(field))
					}
				}
			}
			return true
		})
	}
}
