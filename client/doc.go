// Package client speaks to a Fenceline service: it is what a worker uses to lease a
// report, stage its bytes and publish them under a fence, and what a reader uses to
// resolve a report and fetch it. It knows the service's HTTP interface alone.
//
// # A worker's part
//
// Most stale writes come from workers that did their own part wrong: they forgot the
// fence, went on past their deadline, made a new key for a repetition, or cleared up what
// had been published. So there is one type, [Capability], that a grant returns, and only
// through it can anything be staged or published: it carries the fence, and no request has
// a field for one. It is passed on as an argument, never in a context.
//
// [Client.Hold] is the whole of a worker's part around its work: it acquires the lease,
// renews it, gives the work a context that ends when the lease is lost, clears up after
// failed work, and releases, whatever happens. Who needs the steps apart calls
// [Client.Acquire], [Capability.Keep] and [Capability.Release].
//
// # Deadlines
//
// A capability ends by this side's clocks: at the time at which the request that was
// answered was *sent*, plus the time that the service waited and what remained then, less
// [Config.Margin]; by the monotonic clock or by one that counts suspend, whichever is
// earlier. Only acknowledged renewals move the deadline, and never back. Then
// [Capability.Context] ends, though a renewal may hang or nobody asks; and over stays
// over. Before work that is expensive or that nothing fences, ask [Capability.Enough].
//
// The deadline saves wasted work, and the fence is what protects the report: a worker that
// was paused for longer than its lease is refused with [ErrStaleFence] once a newer lease
// has been granted. So whether a publish may still be made is the service's to say:
// [Capability.Publish] asks it also after the deadline.
//
// # Repeats and outcomes
//
// Every call that changes something is safe to repeat, because its id or its idempotency
// key is chosen by the client. So the client itself repeats what was cut off or answered
// with "unavailable": a bounded number of attempts, with exponential backoff and jitter,
// honouring Retry-After, until the context ends. A call as a whole is bounded by its
// context.
//
// When a call still fails, [errors.As] finds an [*Error] in what it returns. That says what
// became of the change: [NotApplied], or [Unknown], for which [ErrOutcomeUnknown] matches
// too; the other sentinel errors say what was wrong. A proxy's 502, 503 or 504 says nothing
// about the change, and is unknown. After an unknown outcome the same request finds
// out, with the same id or [Error.IdempotencyKey]: if the first attempt had been applied,
// the [Publication]'s Result is [Duplicate]. Deleting what was uploaded would be wrong
// then, since it may be visible: the client never does so.
//
// # Bytes
//
// [Capability.Upload] stages bytes from any reader, in bounded memory, and knows in the end
// that they are in place; many bytes it sends in parts, several at once. [Client.Open] returns a reader that checks the digest and fails
// instead of ending where it differs. [Client.Watch] and [Client.Updates] wait for newer
// versions.
package client
