package main

// What the tests look at from outside.
var (
	Check             = check
	ParseHelp         = parseHelp
	UnpinnedBases     = unpinnedBases
	ErrUnknownCommand = errUnknownCommand
)

// Declared is [declared].
type Declared = declared

// NeedsAndKnows are the required flags and whether a flag and a variable are known.
func (d *declared) NeedsAndKnows(flag, variable string) (required []string, hasFlag, hasVariable bool) {
	_, hasFlag = d.flags[flag]
	return d.required, hasFlag, d.variables[variable]
}
