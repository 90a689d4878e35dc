package collect

// What the tests look at from outside.
var PhaseOf = phaseOf

type Batch = batch
