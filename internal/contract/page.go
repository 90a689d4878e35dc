package contract

import "strings"

// Row is one row of a table of the page: one promise.
type Row struct {
	// Table is the heading that the table stands under.
	Table string
	// Answer and When are its two cells, as they stand there.
	Answer, When string
}

// text is how cases name a row: both cells without the marks of code.
func (r Row) text() string {
	return strings.ReplaceAll(r.Answer+" | "+r.When, "`", "")
}

// Rows reads the tables of a page: their rows, without those of the head.
func Rows(page string) []Row {
	var rows []Row
	heading, line := "", 0 // of the present table
	for text := range strings.Lines(page) {
		text = strings.TrimSpace(text)
		if title := strings.TrimLeft(text, "#"); title != text {
			heading = strings.TrimSpace(title)
		}
		if !strings.HasPrefix(text, "|") {
			line = 0
			continue
		}
		if line++; line <= 2 { // the head, and the line below it
			continue
		}
		answer, when, _ := strings.Cut(strings.Trim(text, "|"), " | ")
		rows = append(rows, Row{heading, strings.TrimSpace(answer), strings.TrimSpace(when)})
	}
	return rows
}
