package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
)

// check returns what is wrong with the Compose file at path, sorted. An error means that it could not be judged at
// all; a file that Compose refuses is a mistake of the file.
func check(ctx context.Context, path string, ask declarations) ([]string, error) {
	f, err := load(ctx, path)
	if err != nil {
		return []string{err.Error()}, nil
	}
	var mistakes []string
	for name, service := range f.project.Services {
		found := slices.Concat(
			portMistakes(service), imageMistakes(service), healthMistakes(f.project, service), hardeningMistakes(service),
			orderMistakes(f.project, service))
		settings, err := settingMistakes(ctx, service, ask)
		if err != nil {
			return nil, err
		}
		for _, m := range slices.Concat(found, settings) {
			mistakes = append(mistakes, fmt.Sprintf("%s: %s", name, m))
		}
	}
	dockerfiles, err := dockerfileMistakes(f.project)
	if err != nil {
		return nil, err
	}
	mistakes = slices.Concat(mistakes, dockerfiles, f.secretMistakes())
	slices.Sort(mistakes)
	return mistakes, nil
}

// commandOf is the command of the program that a service runs, without its name, and whether it runs the program at
// all: the image of that name does, whose entry point is the program.
func commandOf(service types.ServiceConfig) (command []string, runs bool) {
	if repositoryOf(service.Image) != "fenceline" || len(service.Entrypoint) > 0 {
		return nil, false
	}
	if len(service.Command) == 0 {
		return []string{"serve"}, true // the image's
	}
	return service.Command, true
}
