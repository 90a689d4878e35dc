package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// MostCounted is how far the faults that are present are counted.
const MostCounted = 10_000

// Situation is how verifying stands, whichever instance or command does it.
type Situation struct {
	LastCompletedAt     *time.Time // when the last run over all reports came to its end; nil if none is on record
	DeepLastCompletedAt *time.Time // the same of those that read the bytes
	Running             bool
	Faults              int64 // objects that are shown and were not as published when they were last looked at; MostCounted: so many at least
}

// Situation reads how verifying stands. Error: database.ErrUnavailable.
func (v *Verifier) Situation(ctx context.Context) (Situation, error) {
	const query = `
		SELECT (SELECT max(finished_at) FROM verify_run WHERE outcome = 'completed' AND pattern = '*') AS last_completed_at,
		       (SELECT max(finished_at) FROM verify_run WHERE outcome = 'completed' AND pattern = '*' AND deep) AS deep_last_completed_at,
		       EXISTS (SELECT FROM verify_run WHERE finished_at IS NULL) AS running,
		       (SELECT count(*) FROM (
		            SELECT FROM verify_finding f
		            JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
		            WHERE f.present AND o.state = 'sealed'
		            LIMIT @most) faults) AS faults`
	got, _, err := database.Row[Situation](ctx, v.pool, query, pgx.NamedArgs{"most": MostCounted})
	if err != nil {
		return Situation{}, fmt.Errorf("read how verifying stands: %w", err)
	}
	return got, nil
}
