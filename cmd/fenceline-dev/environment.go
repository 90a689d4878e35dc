package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fenceline/fenceline/internal/stack"
)

// environment is what a child sees: the defaults, over them the environment of
// this process without what would lead an AWS client elsewhere, and over that
// the forced variables, with the folder of this executable first on the PATH.
func environment(defaults, forced []string) []string {
	elsewhere := []string{"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL"}
	env := slices.Clone(defaults)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.Contains(elsewhere, name) {
			env = append(env, variable) // of two of a name, the later counts
		}
	}
	if self, err := os.Executable(); err == nil {
		path := filepath.Dir(self) + string(os.PathListSeparator) + os.Getenv("PATH")
		env = append(env, "PATH="+path)
	}
	return append(env, forced...)
}

// settings are the service's settings in development: short retentions are
// allowed, logs are for reading, /metrics is served, and all periods follow from the retention
// where one is given.
func settings(retention time.Duration) ([]string, error) {
	variables := []string{"FENCELINE_ALLOW_SHORT_RETENTION=true", "FENCELINE_LOG_FORMAT=text", "FENCELINE_METRICS=true"}
	if retention == 0 {
		return append(variables, "FENCELINE_GC_FIRST_RUN=collect"), nil // nobody is there to approve it
	}
	periods, err := stack.Scale(retention)
	if err != nil {
		return nil, err
	}
	return append(variables, periods.Variables()...), nil
}
