package stack

import (
	"os"
	"strings"
)

// logTail returns the last lines of a log file, indented under a first empty
// line, ready to be appended to a message; nothing where there is no log.
func logTail(path string) string {
	const lines, bytes = 8, 8192
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return ""
	}
	if len(text) > bytes {
		text = text[len(text)-bytes:]
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "\n    " + strings.Join(all, "\n    ")
}
