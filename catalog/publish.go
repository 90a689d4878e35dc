package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Config says how long things last. The zero value of every field is the default named beside it.
type Config struct {
	// Fencing, PublishesPerGrant, Retention and KeepVersions are the service's defaults of the reports' settings.
	// Default Granted, Many, 14 days and 0.
	Fencing           Mode
	PublishesPerGrant PublishesPerGrant
	Retention         time.Duration
	KeepVersions      int

	// RetentionAbove and RetentionBelow bound the retention that a report may have of its own: longer than
	// the restore window, shorter than the tombstones. Default 7 and 90 days.
	RetentionAbove, RetentionBelow time.Duration

	// PurgeGrace is how long the bytes of an erased version stay. Default 24 h.
	PurgeGrace time.Duration
}

// Seal looks at the bytes of an object and writes down what they are. It talks to the storage, so it is called
// outside of any transaction, and only when all else holds.
type Seal func(ctx context.Context, name fencing.ObjectName) error

// Catalog publishes and resolves reports.
type Catalog struct {
	pool       *pgxpool.Pool
	sealObject Seal
	cfg        Config
	watchers   watchers
}

// New makes a catalog on the database of pool, which seals what it is to publish with seal.
func New(pool *pgxpool.Pool, seal Seal, cfg Config) *Catalog {
	const day = 24 * time.Hour
	cfg.Fencing = cmp.Or(cfg.Fencing, Granted)
	cfg.PublishesPerGrant = cmp.Or(cfg.PublishesPerGrant, Many)
	cfg.Retention = cmp.Or(cfg.Retention, 14*day)
	cfg.RetentionAbove = cmp.Or(cfg.RetentionAbove, 7*day)
	cfg.RetentionBelow = cmp.Or(cfg.RetentionBelow, 90*day)
	cfg.PurgeGrace = cmp.Or(cfg.PurgeGrace, day)
	return &Catalog{pool: pool, sealObject: seal, cfg: cfg}
}

// Request asks for one publish. Exactly one of Object, FromVersion and Withdraw is set.
type Request struct {
	Report          fencing.ReportID
	Fence           fencing.Fence
	IdempotencyKey  string // 1 to 255 printable ASCII characters, the report's own
	Object          fencing.ObjectID
	FromVersion     int64
	Withdraw        bool
	ExpectedVersion *int64
	Metadata        map[string]string
	By              string // who asked
}

// Receipt is the answer to a publish, the first and every repeated one.
type Receipt struct {
	Publication
	Duplicate bool // it had been applied before
}

// Publish moves the visible pointer of a report, if the fence and everything else hold; sent again with the
// same idempotency key it answers with the first receipt. The errors, in the order in which they are looked for:
// fencing.ErrReportNotFound, ErrKeyReused, fencing.ErrFrozen, fencing.ErrStaleFence, fencing.ErrNotGranted, fencing.ErrLeaseNotLive,
// ErrGrantAlreadyUsed, ErrExpectedVersionRequired, ErrVersionConflict, fencing.ErrObjectNotFound,
// ErrVersionNotFound, fencing.ErrObjectGone, what the sealing of the object answers; and at any time
// database.ErrUnavailable, whose outcome may be unknown.
func (c *Catalog) Publish(ctx context.Context, r Request) (Receipt, error) {
	receipt, err := c.publish(ctx, r)
	for tries := 0; errors.Is(err, errNeedsSeal) && tries < mostSeals; tries++ {
		if err = c.seal(ctx, r); err == nil {
			receipt, err = c.publish(ctx, r)
		}
	}
	if err == nil && !receipt.Duplicate {
		c.watchers.see(r.Report, receipt.Version)
	}
	if errors.Is(err, errNeedsSeal) {
		err = &database.UnavailableError{Outcome: database.NotApplied, Cause: err}
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("publish %q under %s: %w", r.Report, r.Fence, err)
	}
	return receipt, nil
}

// mostSeals is how often the bytes of one publish are looked at, should a new epoch begin each time just after.
const mostSeals = 3

// errNeedsSeal reports that all holds but that the bytes have not been looked at in this epoch.
var errNeedsSeal = errors.New("the object is not sealed in this epoch")

// seal looks at the bytes that r wants to show. Nothing was changed by the publish that asked for it, whatever
// becomes of this.
func (c *Catalog) seal(ctx context.Context, r Request) error {
	name := fencing.ObjectName{Report: r.Report, Fence: r.Fence, Object: r.Object}
	if r.FromVersion != 0 {
		older, err := c.Version(ctx, r.Report, r.FromVersion)
		if err != nil {
			return err
		}
		name = older.Object.Name
	}
	err := c.sealObject(ctx, name)
	var away *database.UnavailableError
	if errors.As(err, &away) {
		return &database.UnavailableError{Outcome: database.NotApplied, Cause: err} // not of the publish
	}
	return err
}

// publish asks the database once.
func (c *Catalog) publish(ctx context.Context, r Request) (Receipt, error) {
	const query = `
		SELECT status, reason, highest_epoch, highest_counter, granted_epoch, granted_counter,
		       expected_version, actual_version, visible, receipt
		FROM publish(jsonb_build_array(@request::jsonb))`
	type answer struct {
		Status string
		fencing.Verdict
		ExpectedVersion *int64
		ActualVersion   *int64
		Visible         *bool
		Receipt         *receiptRow
	}
	request, err := json.Marshal(wireRequest{
		Report: r.Report, Epoch: r.Fence.Epoch, Counter: r.Fence.Counter, IdempotencyKey: r.IdempotencyKey,
		Object: r.Object, FromVersion: r.FromVersion, Withdraw: r.Withdraw,
		ExpectedVersion: r.ExpectedVersion, Metadata: r.Metadata, By: r.By,
	})
	if err != nil {
		return Receipt{}, fmt.Errorf("encode the request: %w", err)
	}
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{"request": string(request)})
	if err != nil {
		return Receipt{}, err
	}
	switch got.Status {
	case "applied", "duplicate":
		got.Receipt.Visible = *got.Visible
		return Receipt{Publication: got.Receipt.publication(r.Report), Duplicate: got.Status == "duplicate"}, nil
	case "version_conflict":
		return Receipt{}, &VersionConflictError{Expected: *got.ExpectedVersion, Actual: *got.ActualVersion}
	}
	if err := got.Err(got.Status, r.Fence); err != nil {
		return Receipt{}, err
	}
	return Receipt{}, statusError(got.Status)
}

// wireRequest is one element of what the SQL function publish takes.
type wireRequest struct {
	Report          fencing.ReportID  `json:"report"`
	Epoch           int32             `json:"epoch"`
	Counter         int64             `json:"counter"`
	IdempotencyKey  string            `json:"idempotency_key"`
	Object          fencing.ObjectID  `json:"object_id,omitempty"`
	FromVersion     int64             `json:"from_version,omitempty"`
	Withdraw        bool              `json:"withdraw,omitempty"`
	ExpectedVersion *int64            `json:"expected_version,omitempty"`
	Metadata        map[string]string `json:"metadata,omitzero"`
	By              string            `json:"by,omitempty"`
}

// refusal is the error of a status that says no more than its name.
func statusError(status string) error {
	switch status {
	case "idempotency_key_reused":
		return ErrKeyReused
	case "grant_already_used":
		return ErrGrantAlreadyUsed
	case "expected_version_required":
		return ErrExpectedVersionRequired
	case "object_not_found":
		return fencing.ErrObjectNotFound
	case "version_not_found":
		return ErrVersionNotFound
	case "object_gone":
		return fencing.ErrObjectGone
	case "object_in_use":
		return ErrVersionInUse
	case "report_not_found":
		return fencing.ErrReportNotFound
	case "frozen":
		return fencing.ErrFrozen
	case "needs_seal":
		return errNeedsSeal
	case "epoch_in_doubt":
		return database.ErrEpochInDoubt
	default:
		return fmt.Errorf("unexpected status %q", status)
	}
}
