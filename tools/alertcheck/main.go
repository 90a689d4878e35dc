// Command alertcheck holds the repository's deploy/alerts.yaml against what its rules speak of: that Prometheus can
// read the file, that each series in it is one that the service declares, and that each alert names a section of the
// documents that is there.
//
//	alertcheck [REPOSITORY]
//
// It prints a line for each mistake, and exits with 1 if there is one. It is a module of its own, since what reads
// the rules of Prometheus is large, and nothing else needs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	mistakes, err := checkRepository(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "alertcheck:", err)
		os.Exit(1)
	}
	for _, m := range mistakes {
		fmt.Fprintln(os.Stderr, "deploy/alerts.yaml:", m)
	}
	if len(mistakes) > 0 {
		os.Exit(1)
	}
}

// checkRepository holds root's rules against root's source and documents.
func checkRepository(root string) ([]string, error) {
	rules, err := os.ReadFile(filepath.Join(root, "deploy", "alerts.yaml"))
	if err != nil {
		return nil, err
	}
	declared, err := declaredSeries(filepath.Join(root, "internal", "metrics"))
	if err != nil {
		return nil, err
	}
	return check(rules, declared, func(document string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document)))
		return string(text), err
	}), nil
}
