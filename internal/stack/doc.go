// Package stack starts and stops the servers that Fenceline needs (PostgreSQL
// and an S3 server) and the service itself, as child processes under one
// folder. It serves development, demonstrations and tests; production runs
// servers of its own.
//
// A folder belongs to one process at a time ([Claim]). Everything in it
// survives a stop and a kill: the children end with the process that started
// them, and the next start waits for those that are still ending.
package stack
