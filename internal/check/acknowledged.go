package check

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/fencing"
)

// records is what the database says of the reports that a history tells of.
type records struct {
	granted map[fencing.ReportID]fencing.Fence // the greatest
	lowest  map[fencing.ReportID]fencing.Fence // of the leases still on record
	lenient map[fencing.ReportID]bool          // whose mode lets an overtaken fence publish
	leases  map[leaseKey]fencing.Fence
	made    map[publishKey]made // by idempotency key
	shown   map[versionKey]string
}

type (
	leaseKey struct {
		report fencing.ReportID
		lease  fencing.LeaseID
	}
	publishKey struct {
		report fencing.ReportID
		key    string
	}
	versionKey struct {
		report  fencing.ReportID
		version int64
	}
)

// made is what a row says that a publish has made.
type made struct {
	Version int64
	Fence   fencing.Fence
	SHA256  string
	Row     string
}

// compareHistory holds the database to what was acknowledged, and the answers to each other.
func (c *checker) compareHistory(ctx context.Context, tx pgx.Tx) error {
	h := c.cfg.History
	c.report.Seen.Answers = int64(len(h.Grants) + len(h.Publishes) + len(h.Reads))
	if c.report.Seen.Answers == 0 {
		return nil
	}
	r := records{
		granted: map[fencing.ReportID]fencing.Fence{}, lowest: map[fencing.ReportID]fencing.Fence{},
		lenient: map[fencing.ReportID]bool{}, leases: map[leaseKey]fencing.Fence{},
		made: map[publishKey]made{}, shown: map[versionKey]string{},
	}
	for _, read := range []func(context.Context, pgx.Tx) error{r.readReports, r.readLeases, r.readPublications} {
		if err := read(ctx, tx); err != nil {
			return err
		}
	}
	for _, g := range h.Grants {
		c.compareGrant(r, g)
	}
	for _, p := range h.Publishes {
		c.comparePublish(r, p)
	}
	for _, read := range h.Reads {
		c.compareRead(r, read)
	}
	c.compareTimes(h, r.lenient)
	return nil
}

func (r records) readReports(ctx context.Context, tx pgx.Tx) error {
	const query = `SELECT report_id, granted_epoch, granted_counter, coalesce(fencing, 'granted') = 'accepted' FROM report`
	return each(ctx, tx, query, func(rows pgx.Rows) error {
		var id fencing.ReportID
		var f fencing.Fence
		var lenient bool
		err := rows.Scan(&id, &f.Epoch, &f.Counter, &lenient)
		r.granted[id], r.lenient[id] = f, lenient
		return err
	})
}

func (r records) readLeases(ctx context.Context, tx pgx.Tx) error {
	const query = `SELECT report_id, lease_id, fence_epoch, fence_counter FROM lease WHERE granted_at IS NOT NULL`
	return each(ctx, tx, query, func(rows pgx.Rows) error {
		var k leaseKey
		var f fencing.Fence
		err := rows.Scan(&k.report, &k.lease, &f.Epoch, &f.Counter)
		r.leases[k] = f
		if lowest, seen := r.lowest[k.report]; !seen || f.Compare(lowest) < 0 {
			r.lowest[k.report] = f
		}
		return err
	})
}

func (r records) readPublications(ctx context.Context, tx pgx.Tx) error {
	const query = `
		SELECT report_id, idempotency_key, version, fence_epoch, fence_counter, sha256, to_jsonb(p)::text
		FROM publication p`
	return each(ctx, tx, query, func(rows pgx.Rows) error {
		var k publishKey
		var m made
		var sum []byte
		err := rows.Scan(&k.report, &k.key, &m.Version, &m.Fence.Epoch, &m.Fence.Counter, &sum, &m.Row)
		m.SHA256 = hex.EncodeToString(sum)
		r.made[k], r.shown[versionKey{k.report, m.Version}] = m, m.SHA256
		return err
	})
}

// each calls scan for every row of a query.
func each(ctx context.Context, tx pgx.Tx, query string, scan func(pgx.Rows) error) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// compareGrant: an acknowledged grant is on record as it was acknowledged, unless its record, and with it those
// of all grants before it, was forgotten.
func (c *checker) compareGrant(r records, g Grant) {
	fence, found := r.leases[leaseKey{g.Report, g.Lease}]
	lowest, any := r.lowest[g.Report]
	says := ""
	switch {
	case g.Fence.Compare(r.granted[g.Report]) > 0:
		says = fmt.Sprintf("the lease %s was granted with %s, and the report remembers %s", g.Lease, g.Fence, r.granted[g.Report])
	case found && fence != g.Fence:
		says = fmt.Sprintf("the lease %s was granted with %s, and is on record with %s", g.Lease, g.Fence, fence)
	case !found && any && g.Fence.Compare(lowest) > 0:
		says = fmt.Sprintf("the lease %s was granted with %s, and is not on record", g.Lease, g.Fence)
	}
	if says != "" {
		c.found(Violation{Guarantee: "G1", Promise: "an acknowledged grant is not lost", Report: string(g.Report), Says: says})
	}
}

// comparePublish: what was acknowledged is there as it was acknowledged, and what was refused is not.
func (c *checker) comparePublish(r records, p Publish) {
	m, found := r.made[publishKey{p.Report, p.Key}]
	v := Violation{Guarantee: "G4", Report: string(p.Report)}
	if found {
		v.Rows = []string{m.Row}
	}
	switch p.Outcome {
	case Applied, Duplicate:
		v.Promise = "an acknowledged publish is there as it was acknowledged"
		acknowledged := made{Version: p.Version, Fence: p.Fence, SHA256: p.SHA256, Row: m.Row}
		if !found {
			v.Says = fmt.Sprintf("version %d, acknowledged under the key %s, is not there", p.Version, p.Key)
		} else if m != acknowledged {
			v.Says = fmt.Sprintf("the key %s was acknowledged as version %d under %s with digest %q", p.Key, p.Version, p.Fence, p.SHA256)
		}
	case Refused:
		v.Promise = "a refused publish does not take effect"
		if found {
			v.Guarantee = "G2"
			v.Says = fmt.Sprintf("the key %s under %s was refused as %s", p.Key, p.Fence, p.Code)
		}
	case Unsettled: // it may be there or not; that it is there once at most is asked elsewhere
	}
	if v.Says == "" && p.Outcome == Duplicate && p.Unknowns == 0 {
		v.Guarantee, v.Promise = "G7", "what is said not to be applied is not"
		v.Says = fmt.Sprintf("the key %s is a duplicate, although no earlier attempt was of unknown outcome", p.Key)
	}
	if v.Says != "" {
		c.found(v)
	}
}

// compareRead: readers are shown what was published.
func (c *checker) compareRead(r records, read Read) {
	sum, found := r.shown[versionKey{read.Report, read.Version}]
	if found && sum == read.SHA256 {
		return
	}
	says := fmt.Sprintf("version %d was shown with digest %q, and was published with %q", read.Version, read.SHA256, sum)
	if !found {
		says = fmt.Sprintf("version %d was shown, and was never published", read.Version)
	}
	c.found(Violation{Guarantee: "G5", Promise: "readers are shown what was published", Report: string(read.Report), Says: says})
}
