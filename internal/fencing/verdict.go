package fencing

import (
	"errors"
	"fmt"
)

// ErrReportNotFound reports that nothing was ever leased, raised or set under a report's name.
var ErrReportNotFound = errors.New("there is no such report")

// ErrStaleFence reports that a fence is below what the report demands.
var ErrStaleFence = errors.New("the fence is stale")

// ErrNotGranted reports that a fence is above every one that was ever granted, and so made up.
var ErrNotGranted = errors.New("the fence was never granted")

// ErrFrozen reports that a report only resolves for now, since an operator has frozen it for an incident.
var ErrFrozen = errors.New("the report is frozen")

// ErrLeaseNotLive reports that a report in the mode live was written to without a live lease.
var ErrLeaseNotLive = errors.New("the fence's lease is not live")

// StaleError says by what a fence was beaten. It is ErrStaleFence.
type StaleError struct {
	Presented Fence
	Highest   Fence  // what the report compared it with
	Reason    string // superseded, revoked or epoch_closed
}

// Error tells both fences.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence %s is stale (%s): the highest is %s", e.Presented, e.Reason, e.Highest)
}

// Is makes it ErrStaleFence.
func (e *StaleError) Is(target error) bool { return target == ErrStaleFence }

// NotGrantedError says how far the grants of a report have come. It is ErrNotGranted.
type NotGrantedError struct {
	Presented Fence
	Granted   Fence // the highest ever granted; zero if none was
}

// Error tells both fences.
func (e *NotGrantedError) Error() string {
	return fmt.Sprintf("fence %s was never granted: the highest is %s", e.Presented, e.Granted)
}

// Is makes it ErrNotGranted.
func (e *NotGrantedError) Is(target error) bool { return target == ErrNotGranted }

// Verdict is what the SQL functions that compare a fence answer about it, as columns.
type Verdict struct {
	Reason         *string
	HighestEpoch   *int32
	HighestCounter *int64
	GrantedEpoch   *int32
	GrantedCounter *int64
}

// Err turns the status of such a function into the error that it stands for, and nil where it is none of
// the comparison's.
func (v Verdict) Err(status string, presented Fence) error {
	switch status {
	case "report_not_found":
		return ErrReportNotFound
	case "stale_fence":
		return &StaleError{Presented: presented, Highest: Joined(v.HighestEpoch, v.HighestCounter), Reason: *v.Reason}
	case "fence_not_granted":
		return &NotGrantedError{Presented: presented, Granted: Joined(v.GrantedEpoch, v.GrantedCounter)}
	case "frozen":
		return ErrFrozen
	case "lease_not_live":
		return ErrLeaseNotLive
	default:
		return nil
	}
}

// Joined makes a fence of two columns that may be NULL, which is the zero Fence.
func Joined(epoch *int32, counter *int64) Fence {
	if epoch == nil || counter == nil {
		return Fence{}
	}
	return Fence{Epoch: *epoch, Counter: *counter}
}
