package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// ObjectRecord is what the service has on record of an object, and what the collector makes of it.
type ObjectRecord struct {
	Report      string           `json:"report"`
	ObjectID    string           `json:"object_id"`
	Fence       Fence            `json:"fence"`
	Key         string           `json:"key"`
	State       string           `json:"state"` // reserved, sealed, condemned or deleted
	Declared    ObjectMeasure    `json:"declared"`
	Multipart   *ObjectMultipart `json:"multipart,omitzero"`
	Size        *int64           `json:"size,omitzero"`
	SHA256      string           `json:"sha256,omitzero"`
	ETag        string           `json:"etag,omitzero"`
	ContentType string           `json:"content_type,omitzero"`
	Filename    string           `json:"filename,omitzero"`
	ReservedAt  time.Time        `json:"reserved_at"`
	FoundAt     *time.Time       `json:"found_at,omitzero"` // when a scan first saw its key, which nobody had reserved
	SealedAt    *time.Time       `json:"sealed_at,omitzero"`

	// KeptBecause is why the collector leaves it: visible, held, kept_version, within_retention, live_lease, frozen
	// or held_back; nil if nothing keeps it. EligibleAt is from when it may be condemned; nil while something keeps it
	// without limit.
	KeptBecause *string    `json:"kept_because"`
	EligibleAt  *time.Time `json:"eligible_at"`
	// HeldBack is what holds it back where the brake does; DueBecause why the next pass may condemn it, once nothing
	// keeps it.
	HeldBack   *ObjectHeldBack `json:"held_back,omitzero"`
	DueBecause string          `json:"due_because,omitzero"`
	// CondemnedBecause is why it was condemned, and PurgeAfter from when its bytes may be deleted.
	CondemnedBecause string     `json:"condemned_because,omitzero"`
	PurgeAfter       *time.Time `json:"purge_after,omitzero"`
	// PurgeAttempts is how often the storage was asked to delete the bytes, and refused; PurgeError what it said the last
	// time; RetryAt when it is asked again; Stuck that it has refused ten times or more.
	PurgeAttempts int        `json:"purge_attempts,omitzero"`
	PurgeError    string     `json:"purge_error,omitzero"`
	RetryAt       *time.Time `json:"retry_at,omitzero"`
	Stuck         bool       `json:"stuck,omitzero"`
}

// ObjectHeldBack tells which run's brake holds an object back, and why it is due.
type ObjectHeldBack struct {
	RunID  int64  `json:"run_id"`
	Reason string `json:"reason"`
}

// ObjectMeasure is what was declared of an object's bytes.
type ObjectMeasure struct {
	Size   *int64 `json:"size,omitzero"`
	SHA256 string `json:"sha256,omitzero"`
}

// ObjectMultipart tells of an object that it is uploaded in parts.
type ObjectMultipart struct {
	PartSize int64 `json:"part_size"`
}

// Object reads what is on record of the object of one grant. It fails with [ErrNotFound] where it was never reserved, or
// was deleted so long ago that it is no longer on record.
func (c *Client) Object(ctx context.Context, report string, fence Fence, objectID string) (*ObjectRecord, error) {
	op := opName("read", "object "+fence.String()+"/"+objectID, report)
	if err := checkIDs(op, "report", report, "object", objectID); err != nil {
		return nil, err
	}
	got, _, err := exchange[ObjectRecord](ctx, c, call{
		op: op, method: http.MethodGet, path: []string{"reports", report, "objects", fence.String(), objectID},
	})
	if err != nil {
		return nil, err
	}
	return &got, nil
}

// Objects lists the objects of a report with this id, of which each grant may have one; all objects if the id is empty. It
// begins with those of the newest grant. An error ends it.
func (c *Client) Objects(ctx context.Context, report, objectID string) iter.Seq2[*ObjectRecord, error] {
	op := opName("list", "the objects", report)
	ids, query := []string{"report", report}, url.Values{}
	if objectID != "" {
		ids = append(ids, "object", objectID)
		query.Set("object_id", objectID)
	}
	if err := checkIDs(op, ids...); err != nil {
		return func(yield func(*ObjectRecord, error) bool) { yield(nil, err) }
	}
	return pages[ObjectRecord](ctx, c, call{op: op, method: http.MethodGet, path: []string{"reports", report, "objects"}, query: query})
}
