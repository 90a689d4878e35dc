// Package fencing holds the words that the lease authority, the staging area and the catalog share:
// the report's id, the fencing token, and the answers of the comparison that all of them make.
package fencing

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Fence is the fencing token of one grant: an epoch and a counter, compared in this order as numbers.
// Every grant of a report has a greater one than all before it. The zero Fence is below every grant.
//
// The idea is Martin Kleppmann's, "How to do distributed locking" (2016): a lease cannot stop a paused
// process, but the resource can refuse the smaller token.
type Fence struct {
	Epoch   int32
	Counter int64
}

// ErrInvalidFence reports that a text is not a fence.
var ErrInvalidFence = errors.New(`a fence is "<epoch>.<counter>": two decimal numbers from 1, without leading zeros, such as "1.42"`)

// ParseFence reads "<epoch>.<counter>": epoch 1 to 2^31-1, counter 1 to 2^63-1, decimal, no leading zeros.
// Its error is ErrInvalidFence.
func ParseFence(text string) (Fence, error) {
	epoch, counter, found := strings.Cut(text, ".")
	if !found {
		return Fence{}, ErrInvalidFence
	}
	e, err1 := strconv.ParseInt(epoch, 10, 32)
	c, err2 := strconv.ParseInt(counter, 10, 64)
	f := Fence{Epoch: int32(e), Counter: c}
	if err1 != nil || err2 != nil || e < 1 || c < 1 || f.String() != text {
		return Fence{}, ErrInvalidFence
	}
	return f, nil
}

// String gives the fence as it is on the wire and in keys.
func (f Fence) String() string { return fmt.Sprintf("%d.%d", f.Epoch, f.Counter) }

// MarshalText makes a fence a string in JSON: a number would lose digits past 2^53 in many clients.
func (f Fence) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what MarshalText wrote. Its error is ErrInvalidFence.
func (f *Fence) UnmarshalText(text []byte) (err error) {
	*f, err = ParseFence(string(text))
	return err
}

// Compare orders fences: negative where f is below g, 0 where they are equal, positive above.
func (f Fence) Compare(g Fence) int {
	return cmp.Or(cmp.Compare(f.Epoch, g.Epoch), cmp.Compare(f.Counter, g.Counter))
}

// IsZero tells whether it is no grant's fence.
func (f Fence) IsZero() bool { return f == Fence{} }
