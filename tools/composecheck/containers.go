package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// portMistakes finds what is published beyond this machine.
func portMistakes(service types.ServiceConfig) []string {
	var mistakes []string
	for _, port := range service.Ports {
		address, err := netip.ParseAddr(port.HostIP)
		if err != nil || !address.IsLoopback() {
			mistakes = append(mistakes, fmt.Sprintf("port %d is published on %q: not only on this machine (127.0.0.1:)", port.Target, port.HostIP))
		}
	}
	if service.NetworkMode == "host" {
		mistakes = append(mistakes, "network_mode: host publishes every port")
	}
	return mistakes
}

// healthMistakes wants of each service that it either is watched and started again, or runs once and somebody waits for
// its end.
func healthMistakes(project *types.Project, service types.ServiceConfig) []string {
	if runsOnce(project, service.Name) {
		if service.Restart != "" && service.Restart != types.RestartPolicyNo {
			return []string{fmt.Sprintf("others wait for its end, and restart: %s would start it again", service.Restart)}
		}
		return nil
	}
	var mistakes []string
	if !isWatched(service) {
		mistakes = append(mistakes, "it has no health check, and nobody waits for its end")
	}
	if service.Restart == "" || service.Restart == types.RestartPolicyNo {
		mistakes = append(mistakes, "it has no restart policy, and nobody waits for its end")
	}
	return mistakes
}

func isWatched(service types.ServiceConfig) bool {
	h := service.HealthCheck
	return h != nil && !h.Disable && len(h.Test) > 0 && h.Test[0] != "NONE"
}

// runsOnce tells whether another service waits for the end of this one.
func runsOnce(project *types.Project, name string) bool {
	for _, other := range project.Services {
		if other.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

// hardeningMistakes finds what a container could do that none of ours has to.
func hardeningMistakes(service types.ServiceConfig) []string {
	var mistakes []string
	if !service.ReadOnly {
		mistakes = append(mistakes, "its root file system is not read_only")
	}
	if !slices.Contains(service.SecurityOpt, "no-new-privileges:true") && !slices.Contains(service.SecurityOpt, "no-new-privileges") {
		mistakes = append(mistakes, "it may gain privileges (security_opt: no-new-privileges:true)")
	}
	if !slices.Contains(service.CapDrop, "ALL") {
		mistakes = append(mistakes, "it keeps capabilities (cap_drop: [ALL])")
	}
	if service.Privileged || len(service.CapAdd) > 0 {
		mistakes = append(mistakes, "it is given privileges")
	}
	user, _, _ := strings.Cut(service.User, ":")
	if user == "" || user == "0" || user == "root" {
		mistakes = append(mistakes, fmt.Sprintf("its user is %q: name one that is not root", service.User))
	}
	return mistakes
}
