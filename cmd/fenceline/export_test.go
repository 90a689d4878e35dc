package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// What the tests look at from outside.
var (
	Main      = main
	SaveFile  = saveFile
	ExitCode  = exitCode
	ObjectID  = objectID
	GuessType = guessType
	Explained = explained
)

// Model is the command line as it is declared.
func Model() (*kong.Application, error) {
	parser, err := kong.New(&cli{}, kong.Name("fenceline"))
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}

// ExitRows and ExecRows are the tables of exit codes: the code and what it says.
func ExitRows() (rows [][2]string) {
	for _, m := range exitMeanings() {
		rows = append(rows, [2]string{fmt.Sprint(m.code), m.help})
	}
	return rows
}

func ExecRows() (rows [][2]string) {
	for _, m := range execMeanings() {
		rows = append(rows, [2]string{m.codes, m.help})
	}
	return rows
}
