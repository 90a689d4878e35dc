package verify

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// mostVersions is how many of the versions that show an object are told.
const mostVersions = 20

// shown is an object that readers can get, as it was published.
type shown struct {
	Name      fencing.ObjectName
	Key       string
	Versions  []int64 // that show it, the newest first, mostVersions at most
	Visible   bool
	Size      int64
	SHA256    string // hex
	ETag      string
	VersionID string // empty on a bucket without versions
}

// place is where a run stands in the order of the objects' key.
type place struct {
	Report  string
	Epoch   int32
	Counter int64
	Object  string
}

func placeOf(name fencing.ObjectName) place {
	return place{string(name.Report), name.Fence.Epoch, name.Fence.Counter, string(name.Object)}
}

// row is an object as it stands in the catalog; what is not shown has no versions.
type row struct {
	ReportID     fencing.ReportID
	FenceEpoch   int32
	FenceCounter int64
	ObjectID     fencing.ObjectID
	Key          string
	Etag         *string
	VersionID    *string
	Versions     []int64
	Visible      bool
	Size         *int64
	Sha256       []byte
}

// selectShown looks at objects one by one, and not at what is shown alone: so each page is as much work as the one before,
// however many objects there are that were collected.
const selectShown = `
	SELECT o.report_id, o.fence_epoch, o.fence_counter, o.object_id, o.key, o.etag, o.version_id, p.versions, p.size, p.sha256,
	       (o.fence_epoch, o.fence_counter, o.object_id) IS NOT DISTINCT FROM (r.visible_epoch, r.visible_counter, r.visible_object_id) AS visible
	FROM (
		SELECT * FROM object
		WHERE %s
		ORDER BY report_id, fence_epoch, fence_counter, object_id
		LIMIT @limit
	) o
	JOIN report r USING (report_id)
	CROSS JOIN LATERAL (
		SELECT (array_agg(version ORDER BY version DESC))[:@most] AS versions, max(p.size) AS size,
		       (array_agg(p.sha256 ORDER BY version DESC))[1] AS sha256
		FROM publication p
		WHERE o.state = 'sealed'
		  AND (p.report_id, p.object_epoch, p.object_counter, p.object_id) = (o.report_id, o.fence_epoch, o.fence_counter, o.object_id)
	) p
	ORDER BY o.report_id, o.fence_epoch, o.fence_counter, o.object_id`

// page reads the objects after a place and below the end of a range of reports, shown or not.
func (v *Verifier) page(ctx context.Context, after place, below string, limit int) ([]row, error) {
	query := fmt.Sprintf(selectShown, `(report_id, fence_epoch, fence_counter, object_id) > (@report, @epoch, @counter, @object)
		  AND (@below = '' OR report_id < @below)`)
	rows, err := database.Rows[row](ctx, v.pool, query, pgx.NamedArgs{
		"report": after.Report, "epoch": after.Epoch, "counter": after.Counter, "object": after.Object,
		"below": below, "limit": limit, "most": mostVersions,
	})
	if err != nil {
		return nil, fmt.Errorf("list what is shown: %w", err)
	}
	return rows, nil
}

// again tells whether an object is still shown.
func (v *Verifier) again(ctx context.Context, name fencing.ObjectName) (shown bool, err error) {
	query := fmt.Sprintf(selectShown, `(report_id, fence_epoch, fence_counter, object_id) = (@report, @epoch, @counter, @object)`)
	at := placeOf(name)
	got, found, err := database.Row[row](ctx, v.pool, query, pgx.NamedArgs{
		"report": at.Report, "epoch": at.Epoch, "counter": at.Counter, "object": at.Object, "limit": 1, "most": mostVersions,
	})
	if err != nil {
		return false, fmt.Errorf("read object %q of %q again: %w", name.Object, name.Report, err)
	}
	return found && len(got.Versions) > 0, nil
}

// left counts what is shown after a place. It reads all of it, so that it may take longer than it is given.
func (v *Verifier) left(ctx context.Context, after place, below string) (objects, bytes int64, err error) {
	const query = `
		SELECT count(*) AS objects, coalesce(sum(size), 0)::bigint AS bytes
		FROM object o
		WHERE state = 'sealed' AND (report_id, fence_epoch, fence_counter, object_id) > (@report, @epoch, @counter, @object)
		  AND (@below = '' OR report_id < @below)
		  AND EXISTS (SELECT FROM publication p
		              WHERE (p.report_id, p.object_epoch, p.object_counter, p.object_id) = (o.report_id, o.fence_epoch, o.fence_counter, o.object_id))`
	type sums struct{ Objects, Bytes int64 }
	got, _, err := database.Row[sums](ctx, v.pool, query, pgx.NamedArgs{
		"report": after.Report, "epoch": after.Epoch, "counter": after.Counter, "object": after.Object, "below": below,
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count what is shown: %w", err)
	}
	return got.Objects, got.Bytes, nil
}

func (r row) name() fencing.ObjectName {
	return fencing.ObjectName{Report: r.ReportID, Fence: fencing.Fence{Epoch: r.FenceEpoch, Counter: r.FenceCounter}, Object: r.ObjectID}
}

// shown is the row of an object that is.
func (r row) shown() shown {
	return shown{
		Name: r.name(), Key: r.Key, Versions: r.Versions, Visible: r.Visible, Size: *r.Size, SHA256: hex.EncodeToString(r.Sha256),
		ETag: orEmpty(r.Etag), VersionID: orEmpty(r.VersionID),
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
