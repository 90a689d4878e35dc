package archtest_test

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// answered is where errors meet status and code.
const answered = "api/errors.go"

// neverAnswered lists the exported errors that no client is ever answered with by their name, and why.
func neverAnswered() map[string]string {
	return map[string]string{
		"fencing.ErrInvalidFence":  "decoding answers it as invalid_fence, before any domain call",
		"fencing.ErrInvalidID":     "decoding answers it as invalid_request with the field's name",
		"database.ErrEpochInDoubt": "it is an ErrUnavailable",
		"staging.ErrNoBytes":       "the area turns it into ErrIncomplete, or ErrDamaged where it was sealed",
		"staging.ErrBytesChanged":  "the area turns it into ErrDamaged",
		"staging.ErrNotCompleted":  "the area turns it into ErrPartsWrong",
		"staging.ErrOverwrites":    "it stops the start",
		"staging.ErrFoldsCase":     "it stops the start",
		"staging.ErrListingBroken": "no route lists the bucket",
		"staging.ErrThrottled":     "it is an ErrStorageUnavailable",
		"staging.ErrBelieves":      "only a probe of the storage finds it",
		"staging.ErrNoOverrides":   "only a probe of the storage finds it",
		"staging.ErrForeignBucket": "stops the service before it listens",
		"staging.ErrSecondBucket":  "stops the service before it listens",
		"gc.ErrRunEnded":           "it ends a pass, which nobody waits for",
		"gc.ErrTimeLimit":          "it ends a pass, which nobody waits for",
		"verify.ErrRunEnded":       "it ends a run, which nobody waits for",
	}
}

func TestEveryErrorOfTheDomainHasItsAnswer(t *testing.T) {
	t.Parallel()
	domain := map[string]bool{"lease": true, "staging": true, "catalog": true, "gc": true, "internal/verify": true, "internal/fencing": true, "internal/database": true}
	exempt := neverAnswered()
	inTable := map[string]bool{}
	declared := map[string]string{}
	for _, f := range goFiles(t) {
		if f.Path == answered {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok {
						inTable[x.Name+"."+s.Sel.Name] = true
					}
				}
				return true
			})
		}
		if f.Test || !domain[f.Folder] {
			continue
		}
		for _, name := range sentinels(f) {
			declared[f.Syntax.Name.Name+"."+name] = f.Path
		}
	}
	if len(declared) < 20 || len(inTable) == 0 {
		t.Fatalf("%d errors and %d answers were found", len(declared), len(inTable))
	}
	for name, path := range declared {
		if !inTable[name] && exempt[name] == "" {
			t.Errorf("%s (%s) has no row in %s, and no reason to have none", name, path, answered)
		}
		if inTable[name] && exempt[name] != "" {
			t.Errorf("%s has a row in %s, and is said to need none", name, answered)
		}
	}
	for name := range exempt {
		if declared[name] == "" {
			t.Errorf("%s is said to need no answer, and is not there any more", name)
		}
	}
}

// sentinels lists the exported errors that a file declares.
func sentinels(f file) []string {
	var found []string
	for _, declaration := range f.Syntax.Decls {
		d, ok := declaration.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if strings.HasPrefix(name.Name, "Err") {
					found = append(found, name.Name)
				}
			}
		}
	}
	return found
}

func TestEverySentinelSaysWhatItReports(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.Test {
			continue
		}
		for _, declaration := range f.Syntax.Decls {
			d, ok := declaration.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.ValueSpec)
				comment := s.Doc.Text()
				if d.Lparen == token.NoPos {
					comment = d.Doc.Text()
				}
				if name := s.Names[0].Name; strings.HasPrefix(name, "Err") && !strings.HasPrefix(comment, name+" reports ") {
					t.Errorf("%s:%d: the comment on %s does not begin with %q: %q", f.Path, f.line(s), name, name+" reports", comment)
				}
			}
		}
	}
}
