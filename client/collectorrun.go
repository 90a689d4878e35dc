package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// CollectorRun is the record of one pass of the collector.
type CollectorRun struct {
	RunID        int64          `json:"run_id"`
	DryRun       bool           `json:"dry_run"`
	ReportOnly   bool           `json:"report_only"` // a dry run, since collecting has not been approved here yet
	StartedBy    string         `json:"started_by"`
	StartedAt    time.Time      `json:"started_at"`
	MovedAt      time.Time      `json:"moved_at"` // when it last showed that it lives
	FinishedAt   *time.Time     `json:"finished_at"`
	Phase        string         `json:"phase"`
	Outcome      *string        `json:"outcome"` // completed, failed, paused, time_limit, stopped, abandoned; nil while it is under way
	Error        *string        `json:"error"`
	Condemned    CollectorCount `json:"condemned"`
	PutOff       int64          `json:"put_off"`
	Braked       CollectorCount `json:"braked"` // held back
	Deleted      CollectorCount `json:"deleted"`
	DeleteFailed int64          `json:"delete_failed"`
	Forgotten    int64          `json:"forgotten"`
	Brake        CollectorBrake `json:"brake"`
	ApprovedAt   *time.Time     `json:"approved_at"`
	ApprovedBy   *string        `json:"approved_by"`

	Progress *CollectorProgress `json:"progress"` // nil where nothing is under way
	ByReason []CollectorTally   `json:"by_reason"`
	Errors   []CollectorError   `json:"errors"` // of deletes that failed, the first few
	Scan     *CollectorScan     `json:"scan"`   // nil if it did not list the bucket
}

// CollectorCount is a number of objects, and of their bytes as far as these are known.
type CollectorCount struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// CollectorBrake is how much of what was never published may be condemned within the window, and how much was.
type CollectorBrake struct {
	AtLeast int64          `json:"at_least"` // so many objects may be, whatever their share
	Limit   CollectorCount `json:"limit"`
	Used    CollectorCount `json:"used"`
}

// CollectorProgress is how far the phase under way has come.
type CollectorProgress struct {
	Phase       string   `json:"phase"`
	Done        int64    `json:"done"`
	Total       *int64   `json:"total"` // nil: not known
	PerSecond   *float64 `json:"per_second"`
	RemainingMS *int64   `json:"remaining_ms"`
}

// CollectorTally is how much a pass did for one reason.
type CollectorTally struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
	CollectorCount
}

// CollectorError is one thing that the storage said of deletes that failed.
type CollectorError struct {
	Detail  string    `json:"detail"`
	Objects int64     `json:"objects"`
	LastAt  time.Time `json:"last_at"`
}

// CollectorScan is what the scan of the bucket has seen so far, with what those runs have that it took up.
type CollectorScan struct {
	// Keys is how many keys the listing has shown.
	Keys int64 `json:"keys"`
	// Unknown is how many of them the catalog did not know, and knows now.
	Unknown int64 `json:"unknown"`
	// Returned is under how many deleted objects something had come back, and was removed; and under how many sealed ones
	// unfinished uploads.
	Returned int64            `json:"returned"`
	Foreign  CollectorForeign `json:"foreign"`
	// Completed tells whether it has come to the end. Otherwise the next run that scans takes it up.
	Completed bool `json:"completed"`
}

// CollectorForeign is what is no object of the catalog, and is left alone: other keys, and other versions than the sealed one.
type CollectorForeign struct {
	CollectorCount
	Sample []string `json:"sample"` // some of them
}

// CollectorEntry is what a pass did with one object, or in a dry run would have done.
type CollectorEntry struct {
	Report   string    `json:"report,omitzero"`
	Fence    Fence     `json:"fence,omitzero"`
	ObjectID string    `json:"object_id,omitzero"`
	Key      string    `json:"key"`
	Size     *int64    `json:"size"` // nil where it was never known
	Action   string    `json:"action"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail,omitzero"` // what the storage said of a delete that failed
	At       time.Time `json:"at"`
}

// CollectorRuns lists the passes on record, the newest first. An error ends it.
func (c *Client) CollectorRuns(ctx context.Context) iter.Seq2[*CollectorRun, error] {
	return pages[CollectorRun](ctx, c, call{op: "list the collector's runs", method: http.MethodGet, path: []string{"gc", "runs"}})
}

// CollectorRun reads the record of one pass. It fails with [ErrNotFound] where there is none, or no longer.
func (c *Client) CollectorRun(ctx context.Context, runID int64) (*CollectorRun, error) {
	got, _, err := exchange[CollectorRun](ctx, c, call{op: opRun("read", runID), method: http.MethodGet, path: runPath(runID)})
	if err != nil {
		return nil, err
	}
	return &got, nil
}

// CollectorEntries lists what a pass did with each object, in its order; only those of one action, unless it is empty. An
// error ends it.
func (c *Client) CollectorEntries(ctx context.Context, runID int64, action string) iter.Seq2[*CollectorEntry, error] {
	query := url.Values{"limit": {"1000"}}
	if action != "" {
		query.Set("action", action)
	}
	return pages[CollectorEntry](ctx, c, call{
		op: opRun("list the objects of", runID), method: http.MethodGet, path: append(runPath(runID), "objects"), query: query,
	})
}

// CollectorApproval is the answer to an approval.
type CollectorApproval struct {
	Result string `json:"result"` // "approved" or "already_approved"
	RunID  int64  `json:"run_id"`
	CollectorCount
}

// ApproveCollectorRun releases what a pass has held back, and no more than that: the next pass condemns it, each object
// judged again. Of a pass that only reported it lets collecting begin. It may be repeated. It fails with [ErrConflict]
// where the pass holds nothing back.
func (c *Client) ApproveCollectorRun(ctx context.Context, runID int64) (*CollectorApproval, error) {
	got, _, err := exchange[CollectorApproval](ctx, c, call{
		op: opRun("approve", runID), method: http.MethodPost, path: append(runPath(runID), "approve"), mutating: true,
	})
	if err != nil {
		return nil, err
	}
	return &got, nil
}

// PauseCollector stops the collector everywhere until [Client.ResumeCollector]. It may be repeated.
func (c *Client) PauseCollector(ctx context.Context) error {
	return c.switchCollector(ctx, "pause")
}

// ResumeCollector lets the collector go on. It may be repeated.
func (c *Client) ResumeCollector(ctx context.Context) error {
	return c.switchCollector(ctx, "resume")
}

func (c *Client) switchCollector(ctx context.Context, verb string) error {
	_, _, err := exchange[struct{}](ctx, c, call{op: verb + " the collector", method: http.MethodPost, path: []string{"gc", verb}, mutating: true})
	return err
}

func opRun(verb string, runID int64) string {
	return verb + " collector run " + strconv.FormatInt(runID, 10)
}

func runPath(runID int64) []string { return []string{"gc", "runs", strconv.FormatInt(runID, 10)} }
