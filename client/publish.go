package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"time"
)

// PublishRequest asks for the next version of a report. Exactly one of ObjectID,
// FromVersion and Withdraw says what it shows.
type PublishRequest struct {
	Report string
	Fence  Fence // of the caller's lease

	ObjectID    string // an object that was reserved under Fence
	FromVersion int64  // an older version, whose object is shown again
	Withdraw    bool   // nothing: readers get ErrWithdrawn

	// ExpectedVersion is the version that the publication must follow; nil: any. A
	// second publication under one fence must name it.
	ExpectedVersion *int64
	// Metadata is kept with the version and shown to readers, up to 8 KiB.
	Metadata map[string]string
	// IdempotencyKey makes repeats of this request one publication; "" makes a random
	// one, which an error names. 1–255 printable ASCII characters.
	IdempotencyKey string
}

// Publication is one version of a report. Result and Visible stand only in the answer to
// a publish.
type Publication struct {
	Result      string            `json:"result,omitzero"` // "applied", or "duplicate" of an earlier request
	Report      string            `json:"report"`
	Version     int64             `json:"version"`
	Object      *Object           `json:"object"` // nil: withdrawn
	Fence       Fence             `json:"fence"`
	PublishedAt time.Time         `json:"published_at"`
	Metadata    map[string]string `json:"metadata,omitzero"`
	Visible     *bool             `json:"visible,omitzero"` // of a duplicate: is it still what readers see?
}

// Object is the receipt of the bytes that a publication shows.
type Object struct {
	ObjectID    string `json:"object_id"`
	Fence       Fence  `json:"fence"` // of the grant that staged it
	Key         string `json:"key"`
	Size        int64  `json:"size"`   // in bytes
	SHA256      string `json:"sha256"` // in hex
	ContentType string `json:"content_type,omitzero"`
	Filename    string `json:"filename,omitzero"`
}

// Publish makes the next version of a report. However often the same request with the
// same key is sent, at most one version comes of it, and each repeat gets the first
// receipt. It fails with [ErrStaleFence] where the fence has been overtaken, with
// [ErrVersionConflict] where another version than expected is present. After
// [ErrOutcomeUnknown] repeat the request with [Error.IdempotencyKey]; delete nothing.
func (c *Client) Publish(ctx context.Context, r PublishRequest) (*Publication, error) {
	op := opName("publish", "the next version", r.Report)
	if err := checkIDs(op, "report", r.Report); err != nil {
		return nil, err
	}
	if r.IdempotencyKey == "" {
		r.IdempotencyKey = newID()
	}
	got, _, err := exchange[Publication](ctx, c, call{
		op: op, method: http.MethodPost, path: []string{"reports", r.Report, "publications"}, mutating: true,
		header:         http.Header{"Idempotency-Key": {r.IdempotencyKey}},
		idempotencyKey: r.IdempotencyKey,
		body: struct {
			Fence           Fence             `json:"fence"`
			ObjectID        string            `json:"object_id,omitzero"`
			FromVersion     int64             `json:"from_version,omitzero"`
			Withdraw        bool              `json:"withdraw,omitzero"`
			ExpectedVersion *int64            `json:"expected_version,omitzero"`
			Metadata        map[string]string `json:"metadata,omitzero"`
		}{r.Fence, r.ObjectID, r.FromVersion, r.Withdraw, r.ExpectedVersion, r.Metadata},
	})
	if err != nil {
		return nil, err
	}
	return &got, nil
}

// Report is the newest publication of a report. It fails with [ErrNotFound] where
// nothing was published yet, with [ErrWithdrawn] after a withdrawal.
func (c *Client) Report(ctx context.Context, report string) (*Publication, error) {
	return c.publication(ctx, opName("resolve", "the newest version", report), report)
}

// Publication is one version of a report, visible or not.
func (c *Client) Publication(ctx context.Context, report string, version int64) (*Publication, error) {
	number := strconv.FormatInt(version, 10)
	return c.publication(ctx, opName("read", "version "+number, report), report, "publications", number)
}

func (c *Client) publication(ctx context.Context, op, report string, below ...string) (*Publication, error) {
	if err := checkIDs(op, "report", report); err != nil {
		return nil, err
	}
	got, _, err := exchange[Publication](ctx, c, call{
		op: op, method: http.MethodGet, path: append([]string{"reports", report}, below...),
	})
	if err != nil {
		return nil, err
	}
	return &got, nil
}

// newID is a random id that fits everywhere where the client chooses one.
func newID() string { return rand.Text() }
