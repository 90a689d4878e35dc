package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// settingMistakes holds the command line and the variables of a service against what the program declares for that very
// command: a variable that another command reads does nothing here.
func settingMistakes(ctx context.Context, service types.ServiceConfig, ask declarations) ([]string, error) {
	command, runs := commandOf(service)
	if !runs {
		return foreignVariables(service), nil
	}
	words, flags := splitCommand(command)
	known, err := ask(ctx, words)
	if errors.Is(err, errUnknownCommand) {
		return []string{fmt.Sprintf("fenceline %s: %v", strings.Join(words, " "), err)}, nil
	}
	if err != nil {
		return nil, err
	}
	var mistakes []string
	for _, flag := range flags {
		if _, ok := known.flags[flag]; !ok {
			mistakes = append(mistakes, fmt.Sprintf("fenceline %s has no flag %s", strings.Join(words, " "), flag))
		}
	}
	for _, name := range fencelineVariables(service) {
		if !known.variables[name] {
			mistakes = append(mistakes, fmt.Sprintf("fenceline %s reads no variable %s", strings.Join(words, " "), name))
		}
	}
	for _, flag := range known.required {
		if !slices.Contains(flags, flag) && !slices.ContainsFunc(known.flags[flag], func(name string) bool { return isSet(service, name) }) {
			mistakes = append(mistakes, fmt.Sprintf("fenceline %s needs %s, or %s",
				strings.Join(words, " "), flag, strings.Join(known.flags[flag], ", ")))
		}
	}
	return mistakes, nil
}

// foreignVariables are the program's variables on a service that does not run it.
func foreignVariables(service types.ServiceConfig) []string {
	var mistakes []string
	for _, name := range fencelineVariables(service) {
		mistakes = append(mistakes, name+" is set for something that is not fenceline")
	}
	return mistakes
}

func fencelineVariables(service types.ServiceConfig) []string {
	var names []string
	for name := range service.Environment {
		if strings.HasPrefix(name, "FENCELINE_") {
			names = append(names, name)
		}
	}
	return names
}

func isSet(service types.ServiceConfig, name string) bool {
	value, ok := service.Environment[name]
	return ok && value != nil && *value != ""
}

// splitCommand parts the words that name a command from the names of its flags. What follows the first flag and is none
// itself is some flag's value.
func splitCommand(command []string) (words, flags []string) {
	for _, word := range command {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "-"):
			flags = append(flags, name)
		case len(flags) == 0:
			words = append(words, word)
		}
	}
	return words, flags
}
