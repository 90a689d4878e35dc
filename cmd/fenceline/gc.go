package main

// gcCmd works with the collector, which removes what nothing refers to any more: run makes a pass here, with the settings
// of the service; the others speak to the service.
type gcCmd struct {
	Run     gcRunCmd     `cmd:"" help:"Run one pass of the collector, and print what it did with each object and why."`
	Status  gcStatusCmd  `cmd:"" help:"Show how collecting stands: what is held back, stuck or overdue."`
	Runs    gcRunsCmd    `cmd:"" help:"List the passes on record, the newest first."`
	Show    gcShowCmd    `cmd:"" help:"Show the record of a pass."`
	Explain gcExplainCmd `cmd:"" help:"Say why an object is kept, or from when it goes."`
	Approve gcApproveCmd `cmd:"" help:"Release exactly what a pass has held back, once you have found out why."`
	Ledger  gcLedgerCmd  `cmd:"" help:"Export what passes did with each object: every deletion, and every decision."`
	Pause   gcPauseCmd   `cmd:"" help:"Pause the collector everywhere."`
	Resume  gcResumeCmd  `cmd:"" help:"Let the collector go on."`
}
