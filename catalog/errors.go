package catalog

import (
	"errors"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
)

// ErrKeyReused reports that an idempotency key was applied with another request.
var ErrKeyReused = errors.New("the idempotency key was used for another request")

// ErrGrantAlreadyUsed reports that a report takes one publish a grant, and this grant has had it.
var ErrGrantAlreadyUsed = errors.New("the grant has published already")

// ErrExpectedVersionRequired reports that a grant which has published before must say which version it
// expects: only that orders its own requests.
var ErrExpectedVersionRequired = errors.New("the grant has published before: say which version is expected")

// ErrVersionConflict reports that the present version is not the expected one.
var ErrVersionConflict = errors.New("the present version is another one")

// ErrVersionNotFound reports that a report has no such version.
var ErrVersionNotFound = errors.New("there is no such version")

// ErrNotPublished reports that nothing was published for a report yet.
var ErrNotPublished = errors.New("nothing is published yet")

// ErrWithdrawn reports that the newest publication shows nothing.
var ErrWithdrawn = errors.New("the report is withdrawn")

// VersionConflictError says both versions. It is ErrVersionConflict.
type VersionConflictError struct{ Expected, Actual int64 }

// Error tells both versions.
func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("%v: expected %d, found %d", ErrVersionConflict, e.Expected, e.Actual)
}

// Is makes it ErrVersionConflict.
func (e *VersionConflictError) Is(target error) bool { return target == ErrVersionConflict }

// WithdrawnError says by which publication a report was withdrawn. It is ErrWithdrawn.
type WithdrawnError struct {
	Version     int64
	Fence       fencing.Fence
	PublishedAt time.Time
}

// Error tells the version.
func (e *WithdrawnError) Error() string {
	return fmt.Sprintf("%v since version %d", ErrWithdrawn, e.Version)
}

// Is makes it ErrWithdrawn.
func (e *WithdrawnError) Is(target error) bool { return target == ErrWithdrawn }
