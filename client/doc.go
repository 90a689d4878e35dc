// Package client speaks to a Fenceline service: it is what a worker uses to lease a
// report, upload its bytes and publish them under a fence, and what a reader uses to
// resolve a report and fetch it. It knows the service's HTTP interface alone.
//
// # Fences
//
// [Client.Acquire] grants a lease with a [Fence]. [Client.Publish] presents that fence,
// and the service refuses it with [ErrStaleFence] once a newer lease has been granted:
// a worker that was paused for longer than its lease cannot replace what came after it.
//
// # Repeats and outcomes
//
// Every call that changes something is safe to repeat, because its id or its idempotency
// key is chosen by the client. So the client itself repeats what was cut off or answered
// with "unavailable": a bounded number of attempts, with exponential backoff and jitter,
// honouring Retry-After, until the context ends. A call as a whole is bounded by its
// context.
//
// When a call still fails, its [*Error] says what became of the change: [NotApplied], or
// [Unknown], for which [ErrOutcomeUnknown] matches too. After an unknown outcome the same
// request finds out, with the same id or [Error.IdempotencyKey]. Deleting what was
// uploaded would be wrong then, since it may be visible: the client never does so.
package client
