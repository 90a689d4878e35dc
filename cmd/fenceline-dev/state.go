package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fenceline/fenceline/internal/stack"
)

// state is what a folder remembers from one start to the next. It holds
// secrets, so only its owner may read the file.
type state struct {
	AccessKey string            `json:"access_key"`     // of the S3 server
	SecretKey string            `json:"secret_key"`     // of the S3 server
	S3Port    int               `json:"s3_port"`        // wished for at the next start
	Keys      map[string]string `json:"keys,omitempty"` // API keys by role
}

// readState reads the folder's state, or makes a new one.
func readState(f *stack.Folder) (state, error) {
	text, err := os.ReadFile(statePath(f))
	if errors.Is(err, fs.ErrNotExist) {
		return state{AccessKey: "fenceline", SecretKey: rand.Text(), Keys: map[string]string{}}, nil
	}
	if err != nil {
		return state{}, err
	}
	st := state{Keys: map[string]string{}}
	if err := json.Unmarshal(text, &st); err != nil {
		return state{}, fmt.Errorf("read %s: %w", statePath(f), err)
	}
	return st, nil
}

// write replaces the file in one step.
func (s state) write(f *stack.Folder) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	partial := statePath(f) + ".partial"
	if err := os.WriteFile(partial, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, statePath(f))
}

func statePath(f *stack.Folder) string { return filepath.Join(f.Path(), "state.json") }
