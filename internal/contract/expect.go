package contract

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// alternative is one answer that a row allows for: `409 busy {holder, retry_after_ms}`.
type alternative struct {
	status   string
	code     string // of a problem
	members  []member
	headers  []string
	outcomes []string // each of which must be met
}

// member is a member that the answer must have; with a value, which it must have too.
type member struct{ name, value string }

// A row's first cell consists of statuses and of code, and of words between them, which are for people.
var (
	token      = regexp.MustCompile("`([^`]+)`|\\b([1-5][0-9][0-9])\\b")
	codeText   = regexp.MustCompile(`^[a-z_]+$`)
	headerText = regexp.MustCompile(`^([A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)*)(?:: .*)?$`)
	nameText   = regexp.MustCompile(`^[a-z_0-9]+$`)
	valueText  = regexp.MustCompile(`^(?:"[^"<…]*"|true|false|null|[0-9]+)$`)
)

// alternatives reads the first cell of a row. What stands there before any status is none.
func alternatives(cell string) []alternative {
	var found []alternative
	for _, match := range token.FindAllStringSubmatch(cell, -1) {
		code, status := match[1], match[2]
		if status != "" {
			found = append(found, alternative{status: status})
		}
		if status != "" || len(found) == 0 {
			continue
		}
		a := &found[len(found)-1]
		switch {
		case code == "not_applied" || code == "unknown":
			a.outcomes = append(a.outcomes, code)
		case codeText.MatchString(code):
			if a.code == "" && a.status >= "400" {
				a.code = code
			}
		case strings.HasPrefix(code, "{") || strings.HasPrefix(code, `"`):
			a.members = append(a.members, members(code)...)
		case headerText.MatchString(code):
			a.headers = append(a.headers, headerText.FindStringSubmatch(code)[1])
		}
	}
	return found
}

// members reads `{"result":"renewed","fence"}`, `{expected, actual}` or `"replayed":true`. A value that is not a
// literal, as in `"visible":bool`, may be any.
func members(text string) []member {
	var found []member
	for _, part := range split(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")) {
		name, value, _ := strings.Cut(part, ":")
		name, value = strings.Trim(strings.TrimSpace(name), `"`), strings.TrimSpace(value)
		if !nameText.MatchString(name) {
			continue
		}
		if !valueText.MatchString(value) {
			value = ""
		}
		found = append(found, member{name, value})
	}
	return found
}

// split separates at the commas that stand in no braces and no quotes.
func split(text string) []string {
	var parts []string
	depth, quoted, from := 0, false, 0
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		case r == ',' && depth == 0:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// misses says in what an answer differs from an alternative; nothing if it is one.
func (e alternative) misses(a Answer) []string {
	var misses []string
	if got := fmt.Sprint(a.Status); got != e.status {
		return []string{"status " + got + ", not " + e.status}
	}
	for _, name := range e.headers {
		if a.Header.Get(name) == "" {
			misses = append(misses, "no header "+name)
		}
	}
	if a.Method == "HEAD" {
		return misses
	}
	if e.code != "" && a.Text("code") != e.code {
		misses = append(misses, "code "+a.Text("code")+", not "+e.code)
	}
	for _, m := range e.members {
		got, there := a.Raw(m.name)
		if !there {
			misses = append(misses, "no member "+m.name)
		} else if m.value != "" && got != m.value {
			misses = append(misses, m.name+" is "+got+", not "+m.value)
		}
	}
	if len(e.outcomes) > 0 && !slices.Contains(e.outcomes, a.Text("outcome")) {
		misses = append(misses, "outcome "+a.Text("outcome"))
	}
	return misses
}

// String is the alternative in short.
func (e alternative) String() string { return strings.TrimSpace(e.status + " " + e.code) }

// judge compares all answers that were seen for a row with what it allows for: each must be one of it, and all of
// it must have been seen.
func judge(expected []alternative, seen []Answer) []string {
	if len(expected) == 0 {
		return nil
	}
	met := make([]bool, len(expected))
	outcomes := make([]map[string]bool, len(expected))
	var failures []string
	for _, a := range seen {
		best := []string(nil)
		fits := false
		for i, e := range expected {
			misses := e.misses(a)
			if len(misses) == 0 {
				met[i], fits = true, true
				if outcomes[i] == nil {
					outcomes[i] = map[string]bool{}
				}
				outcomes[i][a.Text("outcome")] = true
			} else if best == nil || e.status == fmt.Sprint(a.Status) {
				best = misses
			}
		}
		if !fits {
			failures = append(failures, fmt.Sprintf("%s: %s", a, strings.Join(best, ", ")))
		}
	}
	for i, e := range expected {
		if !met[i] {
			failures = append(failures, fmt.Sprintf("%s was not seen", e))
		}
		for _, outcome := range e.outcomes {
			if met[i] && !outcomes[i][outcome] {
				failures = append(failures, fmt.Sprintf("%s with the outcome %s was not seen, only %v",
					e, outcome, slices.Sorted(maps.Keys(outcomes[i]))))
			}
		}
	}
	return failures
}
