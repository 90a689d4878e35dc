package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that an [*Error] matches under [errors.Is]. One error may match several.
var (
	// ErrStaleFence reports that a newer lease was granted, or that the fence was
	// revoked or its epoch closed: the work done under it must not be published.
	ErrStaleFence = errors.New("stale fence")
	// ErrFenceNotGranted reports that the fence is above every one that was granted.
	ErrFenceNotGranted = errors.New("fence not granted")
	// ErrBusy reports that another lease on the report is live.
	ErrBusy = errors.New("busy")
	// ErrLeaseLost reports that the lease has ended or is not live; it never comes back.
	ErrLeaseLost = errors.New("lease lost")
	// ErrVersionConflict reports that the present version is not the expected one, or
	// that an expected version must be named.
	ErrVersionConflict = errors.New("version conflict")
	// ErrConflict reports that the state of things forbids the request: an id or key
	// that was used for something else, an object that exists already or is in use.
	ErrConflict = errors.New("conflict")
	// ErrNotFound reports that there is no such thing, or nothing published yet.
	ErrNotFound = errors.New("not found")
	// ErrGone reports that it was there once: withdrawn, erased or collected.
	ErrGone = errors.New("gone")
	// ErrWithdrawn reports that the newest publication is a withdrawal.
	ErrWithdrawn = errors.New("withdrawn")
	// ErrObjectIncomplete reports that the object's bytes are not all there.
	ErrObjectIncomplete = errors.New("object incomplete")
	// ErrObjectMismatch reports that the object's bytes are not those declared.
	ErrObjectMismatch = errors.New("object mismatch")
	// ErrDigestMismatch reports that the bytes received are not those published.
	ErrDigestMismatch = errors.New("digest mismatch")
	// ErrUploadRefused reports that the storage did not take the bytes.
	ErrUploadRefused = errors.New("upload refused")
	// ErrUnauthorized reports that the key is missing, unknown or not allowed to do this.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrInvalidRequest reports that the request makes no sense to the service.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnavailable reports that the service, or what it needs, cannot be reached or
	// cannot decide now.
	ErrUnavailable = errors.New("unavailable")
	// ErrOutcomeUnknown reports that the change may or may not have been applied: only
	// the same request, repeated, finds out.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// Outcome says what became of the change that a failed call asked for.
type Outcome string

// The outcomes of a failed call. Calls that change nothing have none.
const (
	NotApplied Outcome = "not_applied"
	Unknown    Outcome = "unknown"
)

// Error is what a failed call returns: the service's problem document, or what kept the
// client from getting an answer. Fields that the answer did not name are zero.
type Error struct {
	Op         string        // what was being done
	Status     int           // HTTP status; 0 if there was no answer
	Code       string        // stable code of the service, such as "stale_fence"; "" if not its answer
	Detail     string        // explanation for people
	Outcome    Outcome       // what became of the change
	RequestID  string        // names the request in the service's log
	Attempts   int           // how often the request was sent
	RetryAfter time.Duration // when the service suggests to try again

	Reason    string          // stale_fence, lease_lost: why
	Presented Fence           // stale_fence, fence_not_granted: the fence of the request
	Highest   Fence           // stale_fence: what it was compared with
	Granted   Fence           // fence_not_granted: the greatest fence ever granted
	Expected  json.RawMessage // version_conflict, object_mismatch, epoch_mismatch
	Actual    json.RawMessage // version_conflict, object_mismatch, epoch_mismatch
	Holder    string          // busy: who holds the live lease
	Field     string          // invalid_request: which field
	Version   int64           // withdrawn: the version of the withdrawal

	IdempotencyKey string // publish: the key under which the same request may be repeated

	kind  error // the sentinel that this error stands for, if any
	final bool  // the same request would not fare better
	cause error
}

// Error tells what was being done, what went wrong, and whether the outcome is unknown.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Op)
	for _, part := range []string{e.Code, strings.TrimSuffix(e.Detail, ".")} {
		if part != "" {
			text.WriteString(": " + part)
		}
	}
	if e.cause != nil {
		text.WriteString(": " + e.cause.Error())
	}
	if e.Code == "" && e.Status != 0 {
		fmt.Fprintf(&text, " (HTTP status %d)", e.Status)
	}
	if facts := e.facts(); len(facts) > 0 {
		text.WriteString(" (" + strings.Join(facts, ", ") + ")")
	}
	if e.Outcome == Unknown {
		text.WriteString("; the outcome is unknown")
		if e.IdempotencyKey != "" {
			fmt.Fprintf(&text, ", repeat the request with idempotency key %s", e.IdempotencyKey)
		}
	}
	return text.String()
}

// facts lists what the answer named, in a few words each.
func (e *Error) facts() []string {
	var facts []string
	for _, fact := range []struct{ name, value string }{
		{"reason", e.Reason},
		{"presented", shown(e.Presented)},
		{"highest", shown(e.Highest)},
		{"granted", shown(e.Granted)},
		{"expected", string(e.Expected)},
		{"actual", string(e.Actual)},
		{"holder", e.Holder},
		{"field", e.Field},
	} {
		if fact.value != "" {
			facts = append(facts, fact.name+" "+fact.value)
		}
	}
	return facts
}

// shown is a fence as text, and nothing where there is none.
func shown(f Fence) string {
	if f.IsZero() {
		return ""
	}
	return f.String()
}

// Unwrap returns what kept the client from getting an answer, such as a network error.
func (e *Error) Unwrap() error { return e.cause }

// Is makes e match the sentinel errors of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrOutcomeUnknown:
		return e.Outcome == Unknown
	case ErrWithdrawn:
		return e.Code == "withdrawn"
	}
	return e.kind != nil && target == e.kind
}

// codeKind is the sentinel that a code of the service stands for, or nil.
func codeKind(code string) error {
	switch code {
	case "stale_fence":
		return ErrStaleFence
	case "fence_not_granted":
		return ErrFenceNotGranted
	case "busy":
		return ErrBusy
	case "lease_lost", "lease_not_live":
		return ErrLeaseLost
	case "version_conflict", "expected_version_required":
		return ErrVersionConflict
	case "lease_id_reused", "object_id_reused", "idempotency_key_reused", "object_exists", "object_in_use",
		"grant_already_used", "epoch_mismatch", "token_source_mismatch", "counter_exhausted", "already_running", "paused", "nothing_held_back", "frozen":
		return ErrConflict
	case "not_found", "report_not_found", "lease_not_found", "object_not_found", "version_not_found",
		"run_not_found", "not_published":
		return ErrNotFound
	case "withdrawn", "erased", "object_gone":
		return ErrGone
	case "object_incomplete":
		return ErrObjectIncomplete
	case "object_mismatch":
		return ErrObjectMismatch
	case "object_damaged":
		return ErrDigestMismatch
	case "unauthenticated", "forbidden":
		return ErrUnauthorized
	case "invalid_request", "invalid_fence", "missing_fence", "missing_idempotency_key",
		"body_too_large", "unsupported_media_type", "method_not_allowed":
		return ErrInvalidRequest
	case "unavailable", "rate_limited":
		return ErrUnavailable
	}
	return nil
}

// statusKind is the sentinel that an answer which is not the service's own stands for,
// or nil.
func statusKind(status int) error {
	switch status {
	case 429, 502, 503, 504:
		return ErrUnavailable
	case 401, 403:
		return ErrUnauthorized
	case 404:
		return ErrNotFound
	}
	return nil
}
