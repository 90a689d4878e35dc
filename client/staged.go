package client

import (
	"maps"
	"slices"
)

// staged is what this side knows of an object that it has staged under a grant.
type staged struct {
	publishing int  // so many publishes of it are on their way
	kept       bool // it was published, or may have been
}

// requested is what a publish was sent with.
type requested struct{ expected *int64 }

// stages notes that an object is there from now on, or may be.
func (k *Capability) stages(objectID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.staged[objectID] == nil {
		k.staged[objectID] = &staged{}
	}
}

// discarded notes that an object is gone.
func (k *Capability) discarded(objectID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.staged, objectID)
}

// leftovers lists what was staged and neither was published nor may have been.
func (k *Capability) leftovers() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var left []string
	for _, objectID := range slices.Sorted(maps.Keys(k.staged)) {
		if s := k.staged[objectID]; !s.kept && s.publishing == 0 {
			left = append(left, objectID)
		}
	}
	return left
}

// published tells whether anything was published under the grant.
func (k *Capability) published() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version > 0
}

// publishes notes that a publish is about to be sent, and returns the version that it is
// to expect: what the caller names, else that of the grant's own last publish, and for a
// repeated key what was sent with it at first.
func (k *Capability) publishes(r PublishRequest) (expected *int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if object := k.staged[r.ObjectID]; object != nil {
		object.publishing++
	}
	before, repeated := k.sent[r.IdempotencyKey]
	switch {
	case r.ExpectedVersion != nil:
		expected = r.ExpectedVersion
	case repeated:
		return before.expected
	case k.version > 0:
		version := k.version
		expected = &version
	}
	k.sent[r.IdempotencyKey] = requested{expected}
	return expected
}

// hasPublished notes what became of a publish: a version, or a failure.
func (k *Capability) hasPublished(r PublishRequest, version int64, failure *Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version = max(k.version, version)
	if object := k.staged[r.ObjectID]; object != nil {
		object.publishing--
		object.kept = object.kept || failure == nil || failure.Outcome == Unknown
	}
}
