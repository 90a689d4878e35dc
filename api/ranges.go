package api

import (
	"strconv"
	"strings"
)

// rangeKind is what a Range header comes to.
type rangeKind int

const (
	rangeIgnored rangeKind = iota
	rangeSatisfiable
	rangeUnsatisfiable
)

// parseRange reads a Range header of one range of bytes, for a content of size bytes (RFC 9110, section 14.2).
// http.ServeContent, which knows this too, wants to seek; the storage's streams cannot.
func parseRange(header string, size int64) (offset, length int64, kind rangeKind) {
	unit, set, found := strings.Cut(header, "=")
	first, last, isRange := strings.Cut(strings.TrimSpace(set), "-")
	if !found || !isRange || !strings.EqualFold(strings.TrimSpace(unit), "bytes") || strings.Contains(set, ",") {
		return 0, 0, rangeIgnored
	}
	first, last = strings.TrimSpace(first), strings.TrimSpace(last)
	if first == "" { // the last bytes
		suffix, ok := parsePosition(last)
		switch {
		case !ok:
			return 0, 0, rangeIgnored
		case suffix == 0 || size == 0:
			return 0, 0, rangeUnsatisfiable
		}
		suffix = min(suffix, size)
		return size - suffix, suffix, rangeSatisfiable
	}
	from, ok := parsePosition(first)
	to, toOK := size-1, true
	if last != "" {
		to, toOK = parsePosition(last)
	}
	switch {
	case !ok || !toOK || last != "" && to < from:
		return 0, 0, rangeIgnored
	case from >= size:
		return 0, 0, rangeUnsatisfiable
	}
	return from, min(to, size-1) - from + 1, rangeSatisfiable
}

// parsePosition reads digits alone; a number too large for any content counts as the largest.
func parsePosition(text string) (int64, bool) {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, _ := strconv.ParseInt(text, 10, 64) // beyond the range it is the largest int64
	return n, true
}

// matches tells whether the lines of an If-None-Match header name the tag, or any ("*"), by weak comparison.
func matches(lines []string, tag string) bool {
	for candidate := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == "*" || candidate == tag {
			return true
		}
	}
	return false
}
