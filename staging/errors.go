package staging

import (
	"errors"
	"fmt"
)

// ErrIDReused reports that an object id is known under this fence with another declaration.
var ErrIDReused = errors.New("the object id is in use with another declaration")

// ErrExists reports that an object is sealed already, or was condemned: nothing can be uploaded to it.
var ErrExists = errors.New("the object exists already")

// ErrIncomplete reports that an object's bytes have not been uploaded yet.
var ErrIncomplete = errors.New("the object's bytes are not there yet")

// ErrPartsNeeded reports that an object in parts was to be sealed without them, and nothing has completed it yet. It
// is ErrIncomplete.
var ErrPartsNeeded = fmt.Errorf("%w: its parts are needed", ErrIncomplete)

// ErrPartsWrong reports that parts are missing, or are not those that were uploaded. It is ErrIncomplete.
var ErrPartsWrong = fmt.Errorf("%w: parts are missing or others", ErrIncomplete)

// ErrNotInParts reports parts of an object that was not declared to be uploaded in parts.
var ErrNotInParts = errors.New("the object is not uploaded in parts")

// ErrMismatch reports that the bytes are not those that were declared.
var ErrMismatch = errors.New("the object's bytes are not the declared ones")

// ErrInUse reports that an object was published, so that its worker may no longer discard it.
var ErrInUse = errors.New("the object is in use")

// ErrDamaged reports that the bytes in the storage are no longer those that were sealed.
var ErrDamaged = errors.New("the object's bytes are not what was sealed")

// Bytes is what identifies bytes: how many there are, and their SHA-256 in hex. A nil size or an empty
// digest is one that was not declared, or not looked at since the size differed already.
type Bytes struct {
	Size   *int64
	SHA256 string
}

// MismatchError says what was declared or sealed, and what is there. It is ErrMismatch.
type MismatchError struct{ Expected, Actual Bytes }

// Error tells both.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%v: expected %v, found %v", ErrMismatch, e.Expected, e.Actual)
}

// Is makes it ErrMismatch.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// String tells the size and the digest, as far as they are known.
func (b Bytes) String() string {
	if b.Size == nil {
		return fmt.Sprintf("digest %q", b.SHA256)
	}
	return fmt.Sprintf("%d bytes, digest %q", *b.Size, b.SHA256)
}
