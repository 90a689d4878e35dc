package main

// What the tests look at from outside.
var (
	Main      = main
	SaveFile  = saveFile
	ExitCode  = exitCode
	ObjectID  = objectID
	GuessType = guessType
)
