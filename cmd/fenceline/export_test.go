package main

import "github.com/alecthomas/kong"

// What the tests look at from outside.
var (
	Main      = main
	SaveFile  = saveFile
	ExitCode  = exitCode
	ObjectID  = objectID
	GuessType = guessType
)

// Model is the command line as it is declared.
func Model() (*kong.Application, error) {
	parser, err := kong.New(&cli{}, kong.Name("fenceline"))
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}
