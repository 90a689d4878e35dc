package client

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/http"
	"time"
)

// PublishRequest asks for the next version of a report. Exactly one of ObjectID,
// FromVersion and Withdraw says what it shows. Report and fence are those of the
// [Capability] that it is asked of.
type PublishRequest struct {
	ObjectID    string // an object that was staged under the same grant
	FromVersion int64  // an older version, whose object is shown again
	Withdraw    bool   // nothing: readers get ErrWithdrawn

	// ExpectedVersion is the version that the publication must follow. By default it is
	// any for the first publication of a grant, and the one before for each further one.
	ExpectedVersion *int64
	// Metadata is kept with the version and shown to readers, up to 8 KiB.
	Metadata map[string]string
	// IdempotencyKey makes repeats of this request one publication; "" makes a random
	// one, which an error names. 1–255 printable ASCII characters.
	IdempotencyKey string
}

// Publication is one version of a report. Result stands only in the answer to a publish.
type Publication struct {
	Result      Result            `json:"result,omitzero"`
	Report      string            `json:"report"`
	Version     int64             `json:"version"`
	Object      *Object           `json:"object"` // nil: withdrawn
	Fence       Fence             `json:"fence"`
	PublishedAt time.Time         `json:"published_at"`
	Metadata    map[string]string `json:"metadata,omitzero"`
	Visible     *bool             `json:"visible,omitzero"` // is it what readers see? Not told of one just applied

	// What only the history tells.
	IdempotencyKey string    `json:"idempotency_key,omitzero"`
	HeldAt         time.Time `json:"held_at,omitzero"`   // while it is held
	ErasedAt       time.Time `json:"erased_at,omitzero"` // once its bytes were erased
}

// Result says what a publish has done.
type Result string

// The results of a publish that succeeded.
const (
	Applied   Result = "applied"   // it made this version
	Duplicate Result = "duplicate" // an earlier attempt, or another request with its key, had made it
)

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

// settleTime is how long a publish that is on its way when its lease ends may still wait
// for the answer.
const settleTime = 10 * time.Second

// Publish makes the next version of the report, under the fence of the grant. However
// often the same request with the same key is sent, at most one version comes of it, and
// each repeat gets the first receipt. It fails with [ErrStaleFence] where the fence has
// been overtaken, with [ErrVersionConflict] where another version than expected is
// present. After [ErrOutcomeUnknown] repeat the request with [Error.IdempotencyKey];
// delete nothing.
//
// Whether the fence still counts is the service's to say, not the deadline's: so a publish
// may be repeated after the capability is over, and one that was sent in time is not cut
// off at once when ctx ends because the lease is lost.
func (k *Capability) Publish(ctx context.Context, r PublishRequest) (*Publication, error) {
	if r.IdempotencyKey == "" {
		r.IdempotencyKey = newID()
	}
	ctx, stop := k.outlive(ctx)
	defer stop()
	r.ExpectedVersion = k.publishes(r)
	got, _, err := exchange[Publication](ctx, k.client, call{
		op: opName("publish", "the next version", k.granted.Report), method: http.MethodPost,
		path: []string{"reports", k.granted.Report, "publications"}, mutating: true,
		header:         http.Header{"Idempotency-Key": {r.IdempotencyKey}},
		idempotencyKey: r.IdempotencyKey,
		body: struct {
			Fence           Fence             `json:"fence"`
			ObjectID        string            `json:"object_id,omitzero"`
			FromVersion     int64             `json:"from_version,omitzero"`
			Withdraw        bool              `json:"withdraw,omitzero"`
			ExpectedVersion *int64            `json:"expected_version,omitzero"`
			Metadata        map[string]string `json:"metadata,omitzero"`
		}{k.granted.Fence, r.ObjectID, r.FromVersion, r.Withdraw, r.ExpectedVersion, r.Metadata},
	})
	var failure *Error
	errors.As(err, &failure)
	k.hasPublished(r, got.Version, failure)
	if err != nil {
		return nil, k.judge(err)
	}
	return &got, nil
}

// outlive is ctx, but where that ends because the capability does, it ends a while later.
func (k *Capability) outlive(ctx context.Context) (_ context.Context, stop func()) {
	if ctx.Err() != nil {
		return ctx, func() {}
	}
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	grace := time.AfterFunc(math.MaxInt64, func() { cancel(context.Cause(ctx)) })
	detach := context.AfterFunc(ctx, func() {
		if k.context.Err() != nil && errors.Is(context.Cause(ctx), context.Cause(k.context)) {
			grace.Reset(settleTime)
			return
		}
		cancel(context.Cause(ctx))
	})
	return longer, func() {
		detach()
		grace.Stop()
		cancel(nil)
	}
}

// newID is a random id that fits everywhere where the client chooses one.
func newID() string { return rand.Text() }
