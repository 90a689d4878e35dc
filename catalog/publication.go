package catalog

import (
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
)

// Publication is one version of a report: what it shows, and under which fence it was published. It is kept
// for ever, longer than the bytes.
type Publication struct {
	Report         fencing.ReportID
	Version        int64
	Fence          fencing.Fence
	Object         *Object // nil where the publication is a withdrawal
	IdempotencyKey string
	Metadata       map[string]string
	PublishedAt    time.Time
	Visible        bool // it was the newest when it was read
	HeldAt         *time.Time
	ErasedAt       *time.Time
}

// Object is a publication's receipt of the object that it shows.
type Object struct {
	Name        fencing.ObjectName // its fence is the grant that staged it, which may be an older one
	Key         string
	Size        int64
	SHA256      string // hex
	ContentType string // empty: unknown
	Filename    string // empty: none
}

// receiptRow is a publication as the database gives it: as a row, and as the JSON of receipt_of.
type receiptRow struct {
	ReportID       fencing.ReportID  `json:"-"`
	Version        int64             `json:"version"`
	FenceEpoch     int32             `json:"fence_epoch"`
	FenceCounter   int64             `json:"fence_counter"`
	ObjectEpoch    *int32            `json:"object_epoch"`
	ObjectCounter  *int64            `json:"object_counter"`
	ObjectID       *fencing.ObjectID `json:"object_id"`
	ObjectKey      *string           `json:"object_key"`
	Size           *int64            `json:"size"`
	SHA256         *string           `json:"sha256"`
	ContentType    *string           `json:"content_type"`
	Filename       *string           `json:"filename"`
	IdempotencyKey string            `json:"idempotency_key"`
	Metadata       map[string]string `json:"metadata"`
	Visible        bool              `json:"-"`
	HeldAt         *time.Time        `json:"-"`
	ErasedAt       *time.Time        `json:"-"`
	PublishedAt    time.Time         `json:"published_at"`
}

// selectPublications lists the columns of receiptRow.
const selectPublications = `
	SELECT report_id, p.version, p.fence_epoch, p.fence_counter, p.object_epoch, p.object_counter, p.object_id,
	       p.object_key, p.size, encode(p.sha256, 'hex') AS sha256, p.content_type, p.filename, p.idempotency_key, p.metadata,
	       p.published_at, p.version = r.version AS visible, p.held_at, p.erased_at
	FROM publication p
	JOIN report r USING (report_id)`

func (r receiptRow) publication(report fencing.ReportID) Publication {
	p := Publication{
		Report: report, Version: r.Version, Fence: fencing.Fence{Epoch: r.FenceEpoch, Counter: r.FenceCounter},
		IdempotencyKey: r.IdempotencyKey, Metadata: r.Metadata, PublishedAt: r.PublishedAt, Visible: r.Visible,
		HeldAt: r.HeldAt, ErasedAt: r.ErasedAt,
	}
	if r.ObjectID == nil {
		return p
	}
	p.Object = &Object{
		Name: fencing.ObjectName{
			Report: report, Fence: fencing.Joined(r.ObjectEpoch, r.ObjectCounter), Object: *r.ObjectID,
		},
		Key: *r.ObjectKey, Size: *r.Size, SHA256: *r.SHA256,
	}
	if r.ContentType != nil {
		p.Object.ContentType = *r.ContentType
	}
	if r.Filename != nil {
		p.Object.Filename = *r.Filename
	}
	return p
}
