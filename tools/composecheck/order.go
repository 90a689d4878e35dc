package main

import (
	"fmt"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
)

// orderMistakes finds waits that cannot end as they are meant, and a service that may start before its schema is there.
// That what is waited for exists, and that nobody waits in a circle, Compose itself demands.
func orderMistakes(project *types.Project, service types.ServiceConfig) []string {
	var mistakes []string
	for name, wait := range service.DependsOn {
		if wait.Condition == types.ServiceConditionHealthy && !isWatched(project.Services[name]) {
			mistakes = append(mistakes, fmt.Sprintf("it waits until %s is healthy, which has no health check", name))
		}
	}
	if command, runs := commandOf(service); runs && isCommand(command, "serve") && !migratedFirst(project, service) {
		mistakes = append(mistakes, "it serves, and does not wait until `fenceline migrate up` has completed")
	}
	return mistakes
}

func migratedFirst(project *types.Project, service types.ServiceConfig) bool {
	for name, wait := range service.DependsOn {
		command, runs := commandOf(project.Services[name])
		if runs && isCommand(command, "migrate", "up") && wait.Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

func isCommand(command []string, words ...string) bool {
	got, _ := splitCommand(command)
	return slices.Equal(got, words)
}
