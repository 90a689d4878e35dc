package main

// What the tests look at from outside.
var (
	Check           = check
	AddSeries       = addSeries
	CheckRepository = checkRepository
)
