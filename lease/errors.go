package lease

import (
	"errors"
	"fmt"
	"time"
)

// ErrBusy reports that another lease of the report is live.
var ErrBusy = errors.New("another lease is live")

// ErrLost reports that a lease has ended, and stays ended.
var ErrLost = errors.New("the lease has ended")

// ErrIDReused reports that a lease id is known with another holder or another time to live.
var ErrIDReused = errors.New("the lease id is in use with another holder or ttl")

// ErrCounterExhausted reports that no greater fence exists in this epoch.
var ErrCounterExhausted = errors.New("the fence's counter is exhausted in this epoch")

// ErrEpochMismatch reports that the present epoch is not the expected one.
var ErrEpochMismatch = errors.New("the present epoch is not the expected one")

// ErrNotFound reports that there is no such lease, or no live one.
var ErrNotFound = errors.New("there is no such lease")

// BusyError says who holds the report's lease, and for how long at most unless it is renewed. It is ErrBusy.
type BusyError struct {
	Holder     string
	RetryAfter time.Duration
}

// Error tells the holder.
func (e *BusyError) Error() string { return fmt.Sprintf("%v: held by %q", ErrBusy, e.Holder) }

// Is makes it ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// LostError says why a lease was lost: expired, superseded, released, revoked or epoch_closed. It is ErrLost.
type LostError struct{ Reason string }

// Error tells the reason.
func (e *LostError) Error() string { return fmt.Sprintf("%v: %s", ErrLost, e.Reason) }

// Is makes it ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// EpochMismatchError says which epoch was expected, and which one it is. It is ErrEpochMismatch.
type EpochMismatchError struct{ Expected, Actual int32 }

// Error tells both.
func (e *EpochMismatchError) Error() string {
	return fmt.Sprintf("%v: expected %d, it is %d", ErrEpochMismatch, e.Expected, e.Actual)
}

// Is makes it ErrEpochMismatch.
func (e *EpochMismatchError) Is(target error) bool { return target == ErrEpochMismatch }
