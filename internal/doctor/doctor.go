// Package doctor looks at a storage and a database as the service will use them, and says what works, what does not, and
// what follows.
package doctor

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/staging"
)

// Result is how one check ended.
type Result string

// The results, the best first.
const (
	// OK: it works.
	OK Result = "ok"
	// Warning: the service works all the same, with less, or once something is set.
	Warning Result = "warning"
	// Failed: the service must not be used so.
	Failed Result = "failed"
)

// Finding is what one check has found.
type Finding struct {
	About   string `json:"about"` // storage or database
	Check   string `json:"check"`
	Result  Result `json:"result"`
	Detail  string `json:"detail,omitzero"`
	Follows string `json:"follows,omitzero"`
}

// Report is all that was found.
type Report struct {
	Result   Result    `json:"result"` // the worst of the findings
	Findings []Finding `json:"findings"`
}

// Doctor looks at one database and one bucket.
type Doctor struct {
	Pool     *pgxpool.Pool
	PoolSize int32 // how many connections each instance of the service may take
	NoScans  bool  // the collector does not scan the bucket by schedule
	Bucket   *staging.Bucket
}

// Examine looks at both. Where one is away, or lets nobody in, that is found, and the other is looked at all the same.
// What was written to the storage is removed at the end, also when ctx ends before; then the error is its.
func (d *Doctor) Examine(ctx context.Context) (Report, error) {
	findings := append(d.storage(ctx), d.database(ctx)...)
	report := Report{Result: OK, Findings: findings}
	for _, f := range findings {
		if f.Result == Failed || f.Result == Warning && report.Result == OK {
			report.Result = f.Result
		}
	}
	return report, ctx.Err()
}

// found is the finding of a check: err is what was wrong, and then worse its result and follows what comes of it.
func found(about, check string, err error, worse Result, follows, otherwise string) Finding {
	f := Finding{About: about, Check: check, Result: OK, Detail: otherwise}
	if err != nil {
		f.Result, f.Detail, f.Follows = worse, err.Error(), follows
		if errors.Is(err, staging.ErrStorageUnavailable) {
			f.Follows = "it could not be found out: " + follows
		}
	}
	return f
}
