package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/verify"
)

func (s *Server) startVerification(c echo.Context) error {
	body, err := decodeOptional[struct {
		Deep bool `json:"deep"`
	}](c)
	if err != nil {
		return err
	}
	id, err := s.cfg.Verifier.Trigger(c.Request().Context(), verify.Options{Deep: body.Deep, By: keyOf(c).ID})
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusAccepted, map[string]int64{"verification_id": id})
}

// verificationView is the record of a verification as it is shown.
type verificationView struct {
	VerificationID int64      `json:"verification_id"`
	Deep           bool       `json:"deep"`
	Reports        string     `json:"reports"` // a pattern
	StartedBy      string     `json:"started_by"`
	StartedAt      time.Time  `json:"started_at"`
	MovedAt        time.Time  `json:"moved_at"` // when it last showed that it lives
	Attempts       int32      `json:"attempts"` // how often it was begun or gone on with
	FinishedAt     *time.Time `json:"finished_at"`
	Outcome        *string    `json:"outcome"` // null while it is under way
	Error          *string    `json:"error"`
	Total          *count     `json:"total"` // null where it is not known
	Verified       count      `json:"verified"`
	Faults         int64      `json:"faults"`
}

func viewVerification(r verify.Record) verificationView {
	shown := verificationView{
		VerificationID: r.VerificationID, Deep: r.Deep, Reports: r.Pattern, StartedBy: r.StartedBy, StartedAt: r.StartedAt.UTC(),
		MovedAt: r.BeatAt.UTC(), Attempts: r.Attempt, Outcome: r.Outcome, Error: r.Error,
		Verified: count{r.Objects, r.Bytes}, Faults: r.Faults,
	}
	if r.FinishedAt != nil {
		shown.FinishedAt = new(r.FinishedAt.UTC())
	}
	if r.TotalObjects != nil && r.TotalBytes != nil {
		shown.Total = &count{*r.TotalObjects, *r.TotalBytes}
	}
	return shown
}

// findingView is an object that is not as it was published, as it is shown.
type findingView struct {
	Report    fencing.ReportID `json:"report"`
	Versions  []int64          `json:"versions"` // that show it, the newest first
	Visible   bool             `json:"visible"`
	Fence     fencing.Fence    `json:"fence"`
	ObjectID  fencing.ObjectID `json:"object_id"`
	Key       string           `json:"key"`
	Fault     verify.Fault     `json:"fault"`
	Detail    string           `json:"detail,omitempty"`
	Published stored           `json:"published"`
	Found     *stored          `json:"found"` // null where nothing was found
	FirstAt   time.Time        `json:"first_at"`
	FoundAt   time.Time        `json:"found_at"`
	Present   bool             `json:"present"`
}

// stored is what bytes in the storage are known by, as far as that is known.
type stored struct {
	Size      *int64 `json:"size"`
	SHA256    string `json:"sha256,omitempty"`
	ETag      string `json:"etag,omitempty"`
	VersionID string `json:"version_id,omitempty"`
}

func viewFinding(f verify.Finding) findingView {
	shown := findingView{
		Report: f.Object.Report, Versions: f.Versions, Visible: f.Visible, Fence: f.Object.Fence, ObjectID: f.Object.Object, Key: f.Key,
		Fault: f.Fault, Detail: f.Detail, Published: stored(f.Published), FirstAt: f.FirstAt.UTC(), FoundAt: f.FoundAt.UTC(), Present: f.Present,
	}
	if f.Found.Size != nil {
		shown.Found = (*stored)(&f.Found)
	}
	return shown
}

// verificationOf reads the verification in the path. What cannot be one's id is none's.
func verificationOf(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("verification_id"), 10, 64)
	if err != nil || id < 1 {
		return 0, verify.ErrNotFound
	}
	return id, nil
}

func (s *Server) getVerification(c echo.Context) error {
	id, err := verificationOf(c)
	if err != nil {
		return err
	}
	record, err := s.cfg.Verifier.Record(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewVerification(record))
}

func (s *Server) listVerifications(c echo.Context) error {
	p, err := pageOf[int64](c)
	if err != nil {
		return err
	}
	records, err := s.cfg.Verifier.Records(c.Request().Context(), p.from(), p.fetch())
	if err != nil {
		return err
	}
	return writeList(c, p, records, viewVerification, func(r verify.Record) int64 { return r.VerificationID })
}

func (s *Server) listFindings(c echo.Context) error {
	id, err := verificationOf(c)
	if err != nil {
		return err
	}
	p, err := pageOf[verify.After](c)
	if err != nil {
		return err
	}
	findings, err := s.cfg.Verifier.Findings(c.Request().Context(), id, namesOf(keyOf(c).Pattern.Range()), p.from(), p.fetch())
	if err != nil {
		return err
	}
	return writeList(c, p, findings, viewFinding, verify.Finding.Place)
}

// verifyingView is how verifying stands, for the status.
type verifyingView struct {
	LastCompletedAt     *time.Time `json:"last_completed_at"`
	DeepLastCompletedAt *time.Time `json:"deep_last_completed_at"`
	Running             bool       `json:"running"`
	Faults              int64      `json:"faults"`
}
