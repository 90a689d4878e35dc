package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fenceline/fenceline/internal/stack"
)

// envCommand prints what another terminal needs to talk to what is up.
type envCommand struct {
	Dir string `env:"FENCELINE_DEV_DIR" help:"Folder of the data (default: .fenceline in the current directory)." type:"path"`
}

// exportsFile holds the lines to paste, for as long as the stack is up. It has keys in it.
const exportsFile = "exports.sh"

// Run prints the lines that `up` has left in its folder.
func (c *envCommand) Run() error {
	folders := []string{".fenceline", rootFolder}
	if c.Dir != "" {
		folders = []string{c.Dir}
	}
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, exportsFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	}
	return errors.New("nothing is up here: run `make dev` in another terminal first")
}

// exportsOf makes the lines that give a shell the addresses and keys of p.
func exportsOf(p *platform) string {
	var lines strings.Builder
	for _, variable := range p.clientVariables() {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&lines, "export %s='%s'\n", name, value)
	}
	if self, err := os.Executable(); err == nil {
		fmt.Fprintf(&lines, "export PATH='%s':\"$PATH\"\n", filepath.Dir(self))
	}
	return lines.String()
}

// rememberExports leaves the lines where envCommand finds them, until forget is called.
func rememberExports(folder *stack.Folder, exports string) (forget func(), err error) {
	path := filepath.Join(folder.Path(), exportsFile)
	if err := os.WriteFile(path, []byte(exports), 0o600); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(path) }, nil // a file that stays says nothing wrong, only nothing new
}
