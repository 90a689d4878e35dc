package contract

// Of tells whether a case is about a row.
func (c Case) Of(row Row) bool { return c.of(row) }

// Judge compares answers with the first cell of a row.
func Judge(cell string, seen []Answer) []string { return judge(alternatives(cell), seen) }
