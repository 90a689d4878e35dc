// Package catalog is the destination that enforces the fence: it keeps, for each report, which object its
// readers see, and moves that pointer only for a publish whose fence is not stale.
//
// The comparison, the idempotency key, the expected version and the move of the pointer are one transaction
// under the lock of the report's row, in the SQL function publish. What this package adds in Go is the way
// there and back, and the look at the bytes, which must happen outside of any transaction.
package catalog
