package client

import (
	"context"
	"net/http"
	"time"
)

// Status is what an operator should know of the service.
type Status struct {
	Version     string           `json:"version"`
	Warnings    []string         `json:"warnings"` // what needs a look
	Frozen      []string         `json:"frozen"`   // patterns of reports that only resolve
	PausedSince *time.Time       `json:"gc_paused_since"`
	LastRun     *CollectorRun    `json:"last_gc_run"` // the newest that was no dry run
	Collector   CollectorOutlook `json:"collector"`
}

// CollectorOutlook is what the collector has before it, and what it is kept from.
type CollectorOutlook struct {
	ReportOnly         bool             `json:"report_only"` // collecting has not been approved here yet
	HeldBack           []CollectorHeld  `json:"held_back"`   // runs that wait for an approval
	Stuck              int64            `json:"stuck"`       // objects that could not be deleted in ten attempts
	Overdue            CollectorOverdue `json:"overdue"`
	LastCompleteScanAt *time.Time       `json:"last_complete_scan_at"`
}

// CollectorHeld is what one pass holds back.
type CollectorHeld struct {
	RunID int64 `json:"run_id"`
	CollectorCount
}

// CollectorOverdue are objects that should have gone by now.
type CollectorOverdue struct {
	Objects  int64            `json:"objects"`
	OldestMS int64            `json:"oldest_ms"` // how long the first of them has been so; 0 if there are none
	ByAge    []CollectorByAge `json:"by_age"`
}

// CollectorByAge is how many objects should have gone longer ago than that.
type CollectorByAge struct {
	OlderThanMS int64 `json:"older_than_ms"`
	Objects     int64 `json:"objects"`
}

// Status reads how the service stands. It needs an operator's key.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	got, _, err := exchange[Status](ctx, c, call{op: "read the status", method: http.MethodGet, path: []string{"status"}})
	if err != nil {
		return nil, err
	}
	return &got, nil
}
