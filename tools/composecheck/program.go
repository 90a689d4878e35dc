package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// declarations tells what a command of the program declares. It returns errUnknownCommand, perhaps wrapped, for one that
// the program does not have.
type declarations func(ctx context.Context, command []string) (*declared, error)

// errUnknownCommand reports that the program has no such command.
var errUnknownCommand = errors.New("the program has no such command")

// declared is what one command understands.
type declared struct {
	flags     map[string][]string // by name, with dashes: the variables that stand for it
	variables map[string]bool
	required  []string // flags that it cannot do without
}

// program is a built one.
type program struct{ path string }

// buildProgram builds the program of the repository at root. remove takes it away again.
func buildProgram(ctx context.Context, root string) (_ *program, remove func(), err error) {
	dir, err := os.MkdirTemp("", "composecheck-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	p := &program{path: filepath.Join(dir, "fenceline")}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", p.path, "./cmd/fenceline")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		remove()
		return nil, nil, fmt.Errorf("build the program: %w\n%s", err, output)
	}
	return p, remove, nil
}

// declarations asks the program for the help of a command, and reads it.
func (p *program) declarations(ctx context.Context, command []string) (*declared, error) {
	help := exec.CommandContext(ctx, p.path, append(append([]string{}, command...), "--help")...)
	help.Env = []string{} // a variable that is set would no longer be required
	output, err := help.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, fmt.Errorf("%w: %s", errUnknownCommand, strings.TrimSpace(string(output)))
	}
	if err != nil {
		return nil, fmt.Errorf("ask the program for its settings: %w", err)
	}
	return parseHelp(string(output))
}

var (
	// The first line names the required flags: Usage: fenceline serve --bucket=STRING [flags].
	usageFlag = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	// A flag begins its line; the text on the right of it may mention others.
	helpFlag = regexp.MustCompile(`^\s+(?:-\w, )?(--[a-z][a-z0-9-]*)`)
	variable = regexp.MustCompile(`\$([A-Z][A-Z0-9_]*)`)
)

// parseHelp reads what --help printed.
func parseHelp(help string) (*declared, error) {
	usage, rest, found := strings.Cut(help, "\n")
	if !found || !strings.HasPrefix(usage, "Usage: ") {
		return nil, fmt.Errorf("this is not the help of a command: %q", usage)
	}
	d := &declared{flags: map[string][]string{}, variables: map[string]bool{}, required: usageFlag.FindAllString(usage, -1)}
	flag := ""
	for line := range strings.Lines(rest) {
		if match := helpFlag.FindStringSubmatch(line); match != nil {
			flag = match[1]
			d.flags[flag] = nil
		}
		for _, match := range variable.FindAllStringSubmatch(line, -1) {
			d.variables[match[1]] = true
			d.flags[flag] = append(d.flags[flag], match[1])
		}
	}
	return d, nil
}
