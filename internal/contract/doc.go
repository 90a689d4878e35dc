// Package contract walks the page of the contract (docs/contract.md) over plain HTTP: each row of each of its tables
// has a case that brings the row's condition about, and the answer is compared with what stands in the row.
//
// It knows the wire and the page alone, nothing of the service's own packages, so that it can be pointed at any
// server. What has to happen to the servers behind it is done by whoever runs it ([Faults]).
package contract
