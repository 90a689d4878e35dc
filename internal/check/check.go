package check

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/staging"
)

// Config says what to hold the catalog to. The zero value of every field is the default named beside it.
type Config struct {
	// Prefix is the one that the service puts before its keys. Default: none.
	Prefix string
	// Slack is how late the collector may be with what is due. Default 15 min.
	Slack time.Duration
	// History is what workers and readers wrote down. All of it must have been written down before Check
	// is called. Default: none.
	History History
}

// bucket is what the checker needs of the storage.
type bucket interface {
	// Keys lists the keys under a prefix, in byte order. A listing that breaks off ends in an error.
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
	// Head tells what is stored under a key, or staging.ErrNoBytes.
	Head(ctx context.Context, key, versionID string) (staging.Stat, error)
	// Digest reads the bytes with that ETag: staging.ErrNoBytes, staging.ErrBytesChanged.
	Digest(ctx context.Context, key, versionID, etag string) (sum string, size int64, err error)
}

// Report is what a check has found.
type Report struct {
	Violations []Violation
	Seen       Seen
}

// Seen is how much was looked at: without it, nothing found would say nothing.
type Seen struct {
	Reports, Versions, Leases, Objects int64 // rows
	Keys, Digests                      int64 // of the bucket: listed, and read and hashed
	Answers                            int64 // of the history
}

// Violation is one broken promise.
type Violation struct {
	Guarantee string   // which one: G1 to G7
	Promise   string   // what should hold
	Report    string   // of which report; "" for a key that belongs to none
	Says      string   // what is wrong
	Rows      []string // that show it, as JSON
}

// String is the violation on a line, and its rows on a line each.
func (v Violation) String() string {
	text := fmt.Sprintf("%s broken: %s. Report %q: %s", v.Guarantee, v.Promise, v.Report, v.Says)
	return strings.Join(append([]string{text}, v.Rows...), "\n    ")
}

// Check looks at everything. The error tells what could not be looked at; the report is then of no use.
// The pool's role must be able to read the tables and the time: the owner, or the service's own.
func Check(ctx context.Context, pool *pgxpool.Pool, b bucket, cfg Config) (Report, error) {
	if cfg.Slack == 0 {
		cfg.Slack = 15 * time.Minute
	}
	c := &checker{pool: pool, bucket: b, cfg: cfg}
	err := c.inSnapshot(ctx, func(tx pgx.Tx) error {
		return errors.Join(c.count(ctx, tx), c.askAll(ctx, tx), c.compareHistory(ctx, tx), c.readObjects(ctx, tx))
	})
	if err != nil {
		return Report{}, fmt.Errorf("check the database: %w", err)
	}
	if err := errors.Join(c.checkBytes(ctx), c.checkKeys(ctx)); err != nil {
		return Report{}, fmt.Errorf("check the bucket: %w", err)
	}
	return c.report, nil
}

// checker is one check under way.
type checker struct {
	pool    *pgxpool.Pool
	bucket  bucket
	cfg     Config
	objects []object // as they were in the snapshot
	report  Report
}

// inSnapshot lets everything that is read see the same moment, however long it takes.
func (c *checker) inSnapshot(ctx context.Context, read func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read)
}

func (c *checker) count(ctx context.Context, tx pgx.Tx) error {
	const query = `
		SELECT (SELECT count(*) FROM report) AS reports, (SELECT count(*) FROM publication) AS versions,
		       (SELECT count(*) FROM lease) AS leases, (SELECT count(*) FROM object) AS objects`
	s := &c.report.Seen
	return tx.QueryRow(ctx, query).Scan(&s.Reports, &s.Versions, &s.Leases, &s.Objects)
}

// rule is one promise, and the question that finds what breaks it: rows of report_id, says and evidence, an
// array of JSON.
type rule struct {
	guarantee, promise string
	query              string
}

// askAll asks the questions that the database alone can answer.
func (c *checker) askAll(ctx context.Context, tx pgx.Tx) error {
	for _, rules := range [][]rule{versionRules(), fenceRules(), leaseRules(), objectRules(), endRules()} {
		for _, r := range rules {
			if err := c.ask(ctx, tx, r); err != nil {
				return fmt.Errorf("ask whether %s: %w", r.promise, err)
			}
		}
	}
	return nil
}

func (c *checker) ask(ctx context.Context, tx pgx.Tx, r rule) error {
	type finding struct {
		ReportID string
		Says     string
		Evidence []string
	}
	rows, err := tx.Query(ctx, r.query, pgx.NamedArgs{"slack": c.cfg.Slack})
	if err != nil {
		return err
	}
	findings, err := pgx.CollectRows(rows, pgx.RowToStructByName[finding])
	for _, f := range findings {
		c.found(Violation{Guarantee: r.guarantee, Promise: r.promise, Report: f.ReportID, Says: f.Says, Rows: f.Evidence})
	}
	return err
}

func (c *checker) found(v Violation) { c.report.Violations = append(c.report.Violations, v) }
