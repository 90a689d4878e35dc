package main

import (
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// file is a Compose file, as Compose understands it and as it was written.
type file struct {
	project *types.Project
	written map[string]any // before variables are put in
}

// requiredVariable is one that the file refuses to do without: ${NAME:?why}.
var requiredVariable = regexp.MustCompile(`\$\{(\w+):?\?`)

// load reads a Compose file by the rules of Compose itself: unknown keys, values of a wrong type, references to what is
// not there and circles are errors. Variables have their defaults, whatever the environment of this process says;
// required ones have a placeholder.
func load(ctx context.Context, path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var variables []string
	for _, match := range requiredVariable.FindAllSubmatch(text, -1) {
		variables = append(variables, string(match[1])+"=placeholder")
	}
	// A service with a profile is checked as well.
	common := []cli.ProjectOptionsFn{cli.WithEnv(variables), cli.WithProfiles([]string{"*"}), cli.WithName("composecheck")}

	options, err := cli.NewProjectOptions([]string{path}, common...)
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, fmt.Errorf("Compose refuses it: %w", err)
	}
	raw, err := cli.NewProjectOptions([]string{path}, append(common, cli.WithInterpolation(false))...)
	if err != nil {
		return nil, err
	}
	written, err := raw.LoadModel(ctx)
	if err != nil {
		return nil, fmt.Errorf("read it as it is written: %w", err)
	}
	return &file{project: project, written: written}, nil
}
