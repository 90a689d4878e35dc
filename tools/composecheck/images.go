package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// pinnedTag is a tag that names one release: two numbers at least, since a 15 or a 3 moves.
var pinnedTag = regexp.MustCompile(`^v?\d+\.\d+(\.\d+)?([.-][\w.-]+)?$`)

// digest pins an image's very bytes.
var digest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// imageMistakes finds an image that may be another one tomorrow. One that is built here is what its Dockerfile says.
func imageMistakes(service types.ServiceConfig) []string {
	if service.Build != nil || isPinned(service.Image) {
		return nil
	}
	return []string{fmt.Sprintf("the image %q is not pinned to a release", service.Image)}
}

func isPinned(image string) bool {
	_, tag := splitImage(image)
	return digest.MatchString(image) || pinnedTag.MatchString(tag)
}

// repositoryOf is an image's name without tag and digest.
func repositoryOf(image string) string {
	repository, _ := splitImage(image)
	return repository
}

func splitImage(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	colon := strings.LastIndex(image, ":")
	if colon < strings.LastIndex(image, "/")+1 { // none, or the port of a registry
		return image, ""
	}
	return image[:colon], image[colon+1:]
}

// dockerfileMistakes holds the base images of every Dockerfile that is built to the same rule.
func dockerfileMistakes(project *types.Project) ([]string, error) {
	var mistakes, seen []string
	for _, service := range project.Services {
		if service.Build == nil {
			continue
		}
		path := service.Build.Dockerfile
		if !filepath.IsAbs(path) {
			path = filepath.Join(service.Build.Context, path)
		}
		if slices.Contains(seen, path) {
			continue
		}
		seen = append(seen, path)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the Dockerfile of %s: %w", service.Name, err)
		}
		for _, image := range unpinnedBases(string(text)) {
			mistakes = append(mistakes, fmt.Sprintf("%s: the base image %q is not pinned to a release", filepath.Base(path), image))
		}
	}
	return mistakes, nil
}

// from is a line that begins a stage, and the name that the stage may have.
var from = regexp.MustCompile(`(?im)^FROM\s+(?:--platform=\S+\s+)?(\S+)(?:\s+AS\s+(\S+))?\s*$`)

// unpinnedBases are the images of a Dockerfile's stages that are neither pinned, nor an earlier stage, nor nothing.
func unpinnedBases(dockerfile string) []string {
	stages := []string{"scratch"}
	var unpinned []string
	for _, match := range from.FindAllStringSubmatch(dockerfile, -1) {
		if !slices.Contains(stages, match[1]) && !isPinned(match[1]) {
			unpinned = append(unpinned, match[1])
		}
		stages = append(stages, match[2])
	}
	return unpinned
}
