package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// secretName is a name whose value is a secret; secretPlace one whose value says where the secret is.
	secretName  = regexp.MustCompile(`(?i)(password|passwd|passphrase|secret|token|credential|private_?key|access_?key|api_?key|(^|_)key$)`)
	secretPlace = regexp.MustCompile(`(?i)(_file|_path|_dir)$`)
	// urlPassword is the password in a URL; keyword the one in a connection string or among a command's arguments.
	urlPassword = regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@`)
	keyword     = regexp.MustCompile(`(?i)(?:password|passwd|secret|token|access[-_]key)(?:[-_]id)?[= ]\s*([^\s&;"']+)`)
	// ownKey is an API key of the program.
	ownKey = regexp.MustCompile(`\bfl_[A-Za-z0-9]+_[A-Za-z0-9_-]{16,}`)
	// fromOutside is a variable without a value to fall back upon.
	fromOutside = regexp.MustCompile(`^\$(\w+|\{\w+(:?\?[^}]*)?\})$`)
)

// secretMistakes finds secrets that stand in the file as it is written, and so would be the same in every copy.
// A default is one too: ${PASSWORD:-changeme} is a production password sooner or later.
func (f *file) secretMistakes() []string { return literals("", f.written) }

// literals walks through a value of the file, at place.
func literals(place string, value any) []string {
	var mistakes []string
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			inside := strings.TrimPrefix(place+"."+key, ".")
			text := fmt.Sprint(inner)
			if strings.HasSuffix(place, ".environment") && inner != nil && namesSecret(key) && isLiteral(text) {
				mistakes = append(mistakes, inside+": a secret stands in the file")
				continue
			}
			mistakes = append(mistakes, literals(inside, inner)...)
		}
	case []any:
		// Joined, so that a flag and its value, which are two elements, stand side by side.
		words := make([]string, len(value))
		for i, inner := range value {
			words[i] = fmt.Sprint(inner)
			if _, scalar := inner.(string); !scalar {
				mistakes = append(mistakes, literals(place, inner)...)
			}
		}
		mistakes = append(mistakes, literals(place, strings.Join(words, " "))...)
	case string:
		if holdsSecret(value) {
			mistakes = append(mistakes, place+": a secret stands in the file")
		}
	}
	return mistakes
}

func namesSecret(name string) bool {
	return secretName.MatchString(name) && !secretPlace.MatchString(name)
}

// isLiteral tells whether a value is written out, or falls back upon one that is.
func isLiteral(value string) bool {
	return value != "" && !fromOutside.MatchString(value) && !strings.HasPrefix(value, "/run/secrets/")
}

// holdsSecret tells whether a text has a secret within it.
func holdsSecret(text string) bool {
	if ownKey.MatchString(text) {
		return true
	}
	for _, pattern := range []*regexp.Regexp{urlPassword, keyword} {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			if isLiteral(match[1]) {
				return true
			}
		}
	}
	return false
}
