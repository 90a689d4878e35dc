package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
)

func (s *Server) startRun(c echo.Context) error {
	body, err := decodeOptional[struct {
		DryRun bool  `json:"dry_run"`
		Scan   *bool `json:"scan"` // not given: true
	}](c)
	if err != nil {
		return err
	}
	id, err := s.cfg.Collector.Trigger(c.Request().Context(), gc.Options{
		DryRun: body.DryRun, Scan: body.Scan == nil || *body.Scan, By: keyOf(c).ID,
	})
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusAccepted, map[string]int64{"run_id": id})
}

// count is a number of objects, and of their bytes as far as these are known.
type count struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// runView is the record of a pass as it is shown.
type runView struct {
	RunID        int64      `json:"run_id"`
	DryRun       bool       `json:"dry_run"`
	StartedBy    string     `json:"started_by"`
	StartedAt    time.Time  `json:"started_at"`
	MovedAt      time.Time  `json:"moved_at"` // when it last showed that it lives
	FinishedAt   *time.Time `json:"finished_at"`
	Phase        string     `json:"phase"`
	Outcome      *string    `json:"outcome"` // null while it is under way
	Error        *string    `json:"error"`
	Condemned    count      `json:"condemned"`
	PutOff       int64      `json:"put_off"`
	Braked       count      `json:"braked"`
	Deleted      count      `json:"deleted"`
	DeleteFailed int64      `json:"delete_failed"`
	Forgotten    int64      `json:"forgotten"`
	Brake        brakeView  `json:"brake"`

	ReportOnly bool          `json:"report_only"` // dry, since the installation does not collect yet
	ApprovedAt *time.Time    `json:"approved_at"`
	ApprovedBy *string       `json:"approved_by"`
	Progress   *progressView `json:"progress"` // null once it has ended
	ByReason   []gc.Tally    `json:"by_reason"`
	Errors     []gc.Failure  `json:"errors"`
	Scan       *scanView     `json:"scan"` // null where it has not scanned
}

// progressView is how far the present phase is. What is not known is null.
type progressView struct {
	Phase       string   `json:"phase"`
	Done        int64    `json:"done"`
	Total       *int64   `json:"total"`
	PerSecond   *float64 `json:"per_second"`
	RemainingMs *int64   `json:"remaining_ms"`
}

// scanView is what a scan has seen so far, with what it was that it took up.
type scanView struct {
	Keys      int64       `json:"keys"`
	Unknown   int64       `json:"unknown"`
	Returned  int64       `json:"returned"`
	Foreign   foreignView `json:"foreign"`
	Completed bool        `json:"completed"`
}

// foreignView is what is in the bucket among the objects and is none.
type foreignView struct {
	count
	Sample []string `json:"sample"`
}

func viewScan(r gc.Record) *scanView {
	if r.ScanKeys == nil {
		return nil
	}
	return &scanView{
		Keys: *r.ScanKeys, Unknown: r.ScanUnknown, Returned: r.ScanReturned, Completed: r.ScanCompleted,
		Foreign: foreignView{count{r.ScanForeignObjects, r.ScanForeignBytes}, r.ScanForeignSample},
	}
}

// brakeView is how much of what was never published may be condemned within the window, and how much was.
type brakeView struct {
	AtLeast int64 `json:"at_least"` // so many objects may be, whatever their share
	Limit   count `json:"limit"`
	Used    count `json:"used"`
}

func viewRun(r gc.Record) runView {
	v := runView{
		RunID: r.RunID, DryRun: r.DryRun, StartedBy: r.StartedBy, StartedAt: r.StartedAt, MovedAt: r.BeatAt,
		FinishedAt: r.FinishedAt, Phase: r.Phase, Outcome: r.Outcome, Error: r.Error,
		Condemned: count{r.Condemned, r.CondemnedBytes}, PutOff: r.PutOff, Braked: count{r.Braked, r.BrakedBytes},
		Deleted: count{r.Deleted, r.DeletedBytes}, DeleteFailed: r.DeleteFailed, Forgotten: r.Forgotten,
		Brake:      brakeView{r.BrakeMin, count{r.BrakeObjects, r.BrakeBytes}, count{r.BrakeUsedObjects, r.BrakeUsedBytes}},
		ReportOnly: r.ReportOnly, ApprovedAt: r.ApprovedAt, ApprovedBy: r.ApprovedBy, ByReason: r.ByReason, Errors: r.Errors,
		Scan: viewScan(r),
	}
	if p := r.Progress(); p != nil {
		v.Progress = viewProgress(p)
	}
	return v
}

func viewProgress(p *gc.Progress) *progressView {
	v := &progressView{Phase: p.Phase, Done: p.Done, Total: p.Total, PerSecond: p.PerSecond}
	if p.Remaining != nil {
		v.RemainingMs = new(p.Remaining.Milliseconds())
	}
	return v
}

// shownTo leaves out what may name reports that are none of the key's.
func (v runView) shownTo(key Key) runView {
	if key.Pattern == "*" {
		return v
	}
	v.Errors = []gc.Failure{}
	if v.Error != nil {
		v.Error = new("It failed; only a key for all reports is told why.")
	}
	if v.Scan != nil {
		scan := *v.Scan
		scan.Foreign.Sample = []string{}
		v.Scan = &scan
	}
	return v
}

// runOf reads the run in the path. What cannot be a run's id is none's.
func runOf(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("run_id"), 10, 64)
	if err != nil || id < 1 {
		return 0, gc.ErrRunNotFound
	}
	return id, nil
}

func (s *Server) getRun(c echo.Context) error {
	id, err := runOf(c)
	if err != nil {
		return err
	}
	run, err := s.cfg.Collector.Record(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewRun(run).shownTo(keyOf(c)))
}

// approveRun lets go what a run holds back.
func (s *Server) approveRun(c echo.Context) error {
	id, err := runOf(c)
	if err != nil {
		return err
	}
	if _, err := decodeOptional[struct{}](c); err != nil {
		return err
	}
	a, err := s.cfg.Collector.Approve(c.Request().Context(), id, keyOf(c).ID)
	if err != nil {
		return err
	}
	result := "approved"
	if a.Repeated {
		result = "already_approved"
	}
	return writeJSON(c, http.StatusOK, struct {
		Result string `json:"result"`
		RunID  int64  `json:"run_id"`
		count
	}{result, id, count{a.Objects, a.Bytes}})
}

func (s *Server) listRuns(c echo.Context) error {
	p, err := pageOf[int64](c)
	if err != nil {
		return err
	}
	runs, err := s.cfg.Collector.Records(c.Request().Context(), p.from(), p.fetch())
	if err != nil {
		return err
	}
	show := func(r gc.Record) runView { return viewRun(r).shownTo(keyOf(c)) }
	return writeList(c, p, runs, show, func(r gc.Record) int64 { return r.RunID })
}

// entryView is what a pass did with one object.
type entryView struct {
	Report   fencing.ReportID `json:"report"`
	Fence    fencing.Fence    `json:"fence"`
	ObjectID fencing.ObjectID `json:"object_id"`
	Key      string           `json:"key"`
	Size     *int64           `json:"size"`
	Action   string           `json:"action"`
	Reason   string           `json:"reason"`
	Detail   string           `json:"detail,omitzero"`
	At       time.Time        `json:"at,omitzero"` // what a pass tells while it runs has none
}

func viewEntry(e gc.Entry) entryView {
	return entryView{
		Report: e.Object.Report, Fence: e.Object.Fence, ObjectID: e.Object.Object, Key: e.Key, Size: e.Size,
		Action: e.Action, Reason: e.Reason, Detail: e.Detail, At: e.At,
	}
}

func (s *Server) listRunObjects(c echo.Context) error {
	id, err := runOf(c)
	if err != nil {
		return err
	}
	p, err := pageOf[int64](c)
	if err != nil {
		return err
	}
	action := c.QueryParam("action")
	if action != "" && !slices.Contains(gc.Actions(), action) {
		return invalid("action", "action must be one of "+strings.Join(gc.Actions(), ", ")+".")
	}
	entries, err := s.cfg.Collector.Entries(c.Request().Context(), id, namesOf(keyOf(c).Pattern.Range()), action, p.from(), p.fetch())
	if err != nil {
		return err
	}
	return writeList(c, p, entries, viewEntry, func(e gc.Entry) int64 { return e.Entry })
}
