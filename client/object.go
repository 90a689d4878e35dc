package client

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ReserveRequest announces an object before any of its bytes is uploaded.
type ReserveRequest struct {
	ObjectID string // chosen by the caller, one for each object of a grant
	Declaration
}

// Declaration is what is known of an object's bytes beforehand. What is declared is
// checked when the bytes arrive, so declare all that is known.
type Declaration struct {
	ContentType string `json:"content_type,omitzero"`
	Filename    string `json:"filename,omitzero"` // under which readers save it
	Size        *int64 `json:"size,omitzero"`     // in bytes; nil: not known
	SHA256      string `json:"sha256,omitzero"`   // in hex; "": not known
}

// Reservation is a reserved object and the way to upload its bytes.
type Reservation struct {
	Report   string    `json:"-"`
	ObjectID string    `json:"object_id"`
	Fence    Fence     `json:"fence"`
	Key      string    `json:"key"` // in the bucket
	State    string    `json:"state"`
	Upload   UploadURL `json:"upload"`

	declared Declaration
}

// UploadURL is a presigned request. Whoever has it may upload the object's bytes.
type UploadURL struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"` // signed: to be sent as they are
	ExpiresAt time.Time         `json:"expires_at"`
}

// Reserve announces an object under the fence of the grant, for those who send the bytes
// themselves; [Capability.Upload] does it all. The same request may be sent again while
// the object is still reserved, for a fresh upload URL. It fails with [ErrStaleFence] like
// a publish, with [ErrConflict] where the id is taken.
func (k *Capability) Reserve(ctx context.Context, r ReserveRequest) (*Reservation, error) {
	op := opName("reserve", "object "+r.ObjectID, k.granted.Report)
	if err := checkIDs(op, "object", r.ObjectID); err != nil {
		return nil, err
	}
	got, _, err := exchange[Reservation](ctx, k.client, call{
		op: op, method: http.MethodPut, path: k.objectPath(r.ObjectID), body: r.Declaration, mutating: true,
	})
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		k.stages(r.ObjectID)
	}
	if err != nil {
		return nil, k.judge(err)
	}
	got.Report, got.declared = k.granted.Report, r.Declaration
	return &got, nil
}

// Sealed is an object whose bytes were found in place.
type Sealed struct {
	State  string `json:"state"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hex
	ETag   string `json:"etag"`
}

// Seal has the service check that an object's bytes are there and match what was
// declared. It makes nothing visible, and may be repeated; publishing seals too. It fails
// with [ErrObjectIncomplete] or [ErrObjectMismatch].
func (k *Capability) Seal(ctx context.Context, objectID string) (*Sealed, error) {
	return k.seal(ctx, objectID, sealWait(0))
}

// sealWait is how long the service may take to seal so many bytes, which it may have to
// read.
func sealWait(size int64) time.Duration {
	return max(15*time.Minute, time.Duration(size>>30+1)*3*time.Minute)
}

// seal has an object sealed, made of its parts where their ETags are named: of part 1, 2, ….
func (k *Capability) seal(ctx context.Context, objectID string, waits time.Duration, etags ...string) (*Sealed, error) {
	op := opName("seal", "object "+objectID, k.granted.Report)
	if err := checkIDs(op, "object", objectID); err != nil {
		return nil, err
	}
	type part struct {
		Number int    `json:"number"`
		ETag   string `json:"etag"`
	}
	var body struct {
		Parts []part `json:"parts,omitempty"`
	}
	for i, etag := range etags {
		body.Parts = append(body.Parts, part{i + 1, etag})
	}
	got, _, err := exchange[Sealed](ctx, k.client, call{
		op: op, method: http.MethodPost, path: append(k.objectPath(objectID), "seal"),
		body: body, mutating: true, waits: waits,
	})
	if err != nil {
		return nil, k.judge(err)
	}
	return &got, nil
}

// Discard gives up an object that was staged under the grant and never published, also
// once the grant is over. It fails with [ErrConflict] where the object was published.
// After a publish whose outcome is unknown, repeat the publish instead.
func (k *Capability) Discard(ctx context.Context, objectID string) error {
	op := opName("discard", "object "+objectID, k.granted.Report)
	if err := checkIDs(op, "object", objectID); err != nil {
		return err
	}
	_, _, err := exchange[struct{}](ctx, k.client, call{
		op: op, method: http.MethodDelete, path: k.objectPath(objectID), mutating: true,
	})
	if err != nil {
		return err
	}
	k.discarded(objectID)
	return nil
}

func (k *Capability) objectPath(objectID string) []string {
	return []string{"reports", k.granted.Report, "objects", k.granted.Fence.String(), objectID}
}
