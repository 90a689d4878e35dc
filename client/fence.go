package client

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Fence is the fencing token of one grant. Fences of one report are ordered, first by
// Epoch, then by Counter, and every new grant has a greater one. The zero Fence belongs
// to no grant.
type Fence struct {
	Epoch   int32
	Counter int64
}

// ParseFence reads a fence as the service writes it, "<epoch>.<counter>": decimal
// numbers from 1, without sign or leading zeros, up to 2^31−1 and 2^63−1.
func ParseFence(text string) (Fence, error) {
	epoch, counter, found := strings.Cut(text, ".")
	if !found {
		return Fence{}, fmt.Errorf("fence %q is not <epoch>.<counter>", text)
	}
	e, errEpoch := parsePositive(epoch, math.MaxInt32)
	c, errCounter := parsePositive(counter, math.MaxInt64)
	if err := cmp.Or(errEpoch, errCounter); err != nil {
		return Fence{}, fmt.Errorf("fence %q: %w", text, err)
	}
	return Fence{Epoch: int32(e), Counter: c}, nil
}

// parsePositive reads a decimal number from 1 to most, in its only spelling.
func parsePositive(text string, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > most || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", text, most)
	}
	return n, nil
}

// String is the fence as it stands on the wire, such as "1.42".
func (f Fence) String() string {
	return strconv.FormatInt(int64(f.Epoch), 10) + "." + strconv.FormatInt(f.Counter, 10)
}

// Compare returns -1 if f is older than g, 0 if they are the same, +1 if f is newer.
// Fences of different reports have nothing to do with each other.
func (f Fence) Compare(g Fence) int {
	return cmp.Or(cmp.Compare(f.Epoch, g.Epoch), cmp.Compare(f.Counter, g.Counter))
}

// IsZero tells whether f is the zero Fence, which belongs to no grant.
func (f Fence) IsZero() bool { return f == Fence{} }

// MarshalText makes a fence a JSON string: a JSON number loses digits past 2^53 in many
// programs.
func (f Fence) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what [ParseFence] reads.
func (f *Fence) UnmarshalText(text []byte) error {
	parsed, err := ParseFence(string(text))
	if err != nil {
		return err
	}
	*f = parsed
	return nil
}
