package api

import (
	"fmt"
	"strings"

	"github.com/fenceline/fenceline/internal/fencing"
)

// Pattern says which reports a key is for: `*` all of them, `july` the one of
// that name, `sales.*` every one whose id begins with `sales.`. A star stands
// only at the end, and nothing else is special.
type Pattern string

// isReportID tells whether a report can have this id.
func isReportID(s string) bool {
	_, err := fencing.ParseReportID(s)
	return err == nil
}

// ParsePattern checks a pattern that came from outside. Its error says what is
// wrong in words for whoever typed it.
func ParsePattern(s string) (Pattern, error) {
	if s == "*" || isReportID(strings.TrimSuffix(s, "*")) {
		return Pattern(s), nil
	}
	return "", fmt.Errorf("pattern %q: want *, a report's id, or the beginning of ids followed by *", s)
}

// Covers tells whether the pattern is for this report.
func (p Pattern) Covers(report string) bool {
	prefix, isPrefix := strings.CutSuffix(string(p), "*")
	if isPrefix {
		return strings.HasPrefix(report, prefix)
	}
	return report == string(p)
}

// Contains tells whether every report that the other pattern covers is covered by this one.
func (p Pattern) Contains(other Pattern) bool {
	mine, isPrefix := strings.CutSuffix(string(p), "*")
	theirs, _ := strings.CutSuffix(string(other), "*")
	if isPrefix {
		return strings.HasPrefix(theirs, mine)
	}
	return p == other
}

// Range is the half-open interval [From, To) of report ids in byte order, as a
// query with COLLATE "C" compares them: `id >= from AND id < to`. So no prefix
// is ever matched by LIKE, to which `_` means something else.
type Range struct {
	From, To string
}

// lastText is above every report's id.
const lastText = "\U0010FFFF"

// Range is the interval of the reports that the pattern covers.
func (p Pattern) Range() Range {
	prefix, isPrefix := strings.CutSuffix(string(p), "*")
	if isPrefix {
		return PrefixRange(prefix)
	}
	// Nothing lies between an id and the id with the lowest character that
	// PostgreSQL can hold behind it.
	return Range{From: string(p), To: string(p) + "\x01"}
}

// PrefixRange is the interval of the ids that begin with prefix, which consists
// of characters of ids (ASCII, so the last one has a successor).
func PrefixRange(prefix string) Range {
	if prefix == "" {
		return Range{To: lastText}
	}
	last := len(prefix) - 1
	return Range{From: prefix, To: prefix[:last] + string(prefix[last]+1)}
}

// And is the interval that both ranges share; where they share nothing it is
// empty, with From at or above To.
func (r Range) And(other Range) Range {
	return Range{From: max(r.From, other.From), To: min(r.To, other.To)}
}
