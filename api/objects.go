package api

import (
	"errors"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/staging"
)

// objectName reads the path of one object.
func objectName(c echo.Context) (fencing.ObjectName, error) {
	fence, err := parseFence(c.Param("fence"))
	if err != nil {
		return fencing.ObjectName{}, err
	}
	id, err := parseObjectID(c.Param("object_id"))
	return fencing.ObjectName{Report: reportOf(c), Fence: fence, Object: id}, err
}

func parseObjectID(text string) (fencing.ObjectID, error) {
	id, err := fencing.ParseObjectID(text)
	if err != nil {
		return "", invalid("object_id", "An object's id is 1 to 128 letters, digits, dots, underscores and hyphens, and begins with a letter or digit.")
	}
	return id, nil
}

// declaration is what a reservation says of the bytes to come.
type declaration struct {
	ContentType *string  `json:"content_type"`
	Filename    *string  `json:"filename"`
	Size        *int64   `json:"size"`
	SHA256      *string  `json:"sha256"`
	Multipart   *inParts `json:"multipart"`
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (d declaration) check() (staging.Declaration, error) {
	checked := staging.Declaration{Size: d.Size}
	if d.Multipart != nil {
		checked.PartSize = d.Multipart.PartSize
		if err := d.Multipart.check(d.Size); err != nil {
			return checked, err
		}
	} else if d.Size != nil && (*d.Size < 0 || *d.Size > staging.MaxUploadSize) {
		return checked, invalid("size", "size must be from 0 to 5368709120 bytes (5 GiB), the most that one upload takes.")
	}
	if d.SHA256 != nil {
		checked.SHA256 = strings.ToLower(*d.SHA256)
		if !sha256Hex.MatchString(checked.SHA256) {
			return checked, invalid("sha256", "sha256 must be 64 hexadecimal digits.")
		}
	}
	if d.ContentType != nil {
		checked.ContentType = *d.ContentType
		if !isMediaType(checked.ContentType) {
			return checked, invalid("content_type", "content_type must be a media type of at most 255 characters, such as text/csv.")
		}
	}
	if d.Filename != nil {
		checked.Filename = *d.Filename
		if !isFilename(checked.Filename) {
			return checked, invalid("filename", "filename must have 1 to 255 characters, without slashes and control characters.")
		}
	}
	return checked, nil
}

func isMediaType(text string) bool {
	_, _, err := mime.ParseMediaType(text)
	return err == nil && strings.Contains(text, "/") && len(text) <= 255 &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

func isFilename(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= 1 && n <= 255 && !strings.ContainsFunc(text, func(r rune) bool {
		return r == '/' || r == '\\' || unicode.IsControl(r)
	})
}

func (s *Server) reserveObject(c echo.Context) error {
	name, err := objectName(c)
	if err != nil {
		return err
	}
	body, err := decodeOptional[declaration](c)
	if err != nil {
		return err
	}
	declared, err := body.check()
	if err != nil {
		return err
	}
	if declared.Parts, err = parsePartRange(c.QueryParam("parts"), declared); err != nil {
		return err
	}
	declared.By = keyOf(c).ID
	r, err := s.cfg.Objects.Reserve(c.Request().Context(), name, declared)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if r.Repeated {
		status = http.StatusOK
	}
	return writeJSON(c, status, struct {
		ObjectID fencing.ObjectID `json:"object_id"`
		Fence    fencing.Fence    `json:"fence"`
		Key      string           `json:"key"`
		State    staging.State    `json:"state"`
		Upload   any              `json:"upload"`
	}{
		ObjectID: name.Object, Fence: name.Fence, Key: r.Key, State: staging.Reserved,
		Upload: viewUpload(r, declared),
	})
}

func (s *Server) sealObject(c echo.Context) error {
	name, err := objectName(c)
	if err != nil {
		return err
	}
	body, err := decodeOptional[sealRequest](c)
	if err != nil {
		return err
	}
	parts, err := body.check()
	if err != nil {
		return err
	}
	o, err := s.cfg.Objects.Seal(c.Request().Context(), name, parts...)
	if errors.Is(err, staging.ErrPartsNeeded) { // which a publish cannot name
		return invalid("parts", "The object is uploaded in parts: name them all, each with the ETag that the storage answered.").because(err)
	}
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, struct {
		State  staging.State `json:"state"`
		Size   int64         `json:"size"`
		SHA256 string        `json:"sha256"`
		ETag   string        `json:"etag"`
	}{o.State, *o.Size, o.SHA256, o.ETag})
}

func (s *Server) discardObject(c echo.Context) error {
	name, err := objectName(c)
	if err != nil {
		return err
	}
	if _, err := decodeOptional[struct{}](c); err != nil {
		return err
	}
	state, err := s.cfg.Objects.Discard(c.Request().Context(), name)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, map[string]staging.State{"state": state})
}

// objectView is an object as it is shown.
type objectView struct {
	Report      fencing.ReportID `json:"report"`
	ObjectID    fencing.ObjectID `json:"object_id"`
	Fence       fencing.Fence    `json:"fence"`
	Key         string           `json:"key"`
	State       staging.State    `json:"state"`
	Declared    measure          `json:"declared"`
	Multipart   *inParts         `json:"multipart,omitzero"`
	Size        *int64           `json:"size,omitzero"`
	SHA256      string           `json:"sha256,omitzero"`
	ETag        string           `json:"etag,omitzero"`
	ContentType string           `json:"content_type,omitzero"`
	Filename    string           `json:"filename,omitzero"`
	ReservedAt  time.Time        `json:"reserved_at"`
	SealedAt    *time.Time       `json:"sealed_at,omitzero"`
	FoundAt     *time.Time       `json:"found_at,omitzero"` // of what a scan of the bucket found and nobody had reserved

	// KeptBecause is why the collector leaves it: visible, held, kept_version, within_retention, live_lease, frozen, held_back;
	// null if nothing keeps it. EligibleAt is from when the collector may take it; null while something keeps it
	// without limit. HeldBack tells which run's brake holds it back, and why it is due.
	KeptBecause *string       `json:"kept_because"`
	EligibleAt  *time.Time    `json:"eligible_at"`
	HeldBack    *heldBackView `json:"held_back,omitzero"`
	// DueBecause is the reason for which the next pass may condemn it, once nothing keeps it.
	DueBecause string `json:"due_because,omitzero"`
	// CondemnedBecause and PurgeAfter say why it was taken, and from when its bytes may be deleted.
	CondemnedBecause string     `json:"condemned_because,omitzero"`
	PurgeAfter       *time.Time `json:"purge_after,omitzero"`
	// How often the storage has refused to delete the bytes, what it said the last time, and when it is asked again;
	// Stuck from the tenth time on.
	PurgeAttempts int        `json:"purge_attempts,omitzero"`
	PurgeError    string     `json:"purge_error,omitzero"`
	RetryAt       *time.Time `json:"retry_at,omitzero"`
	Stuck         bool       `json:"stuck,omitzero"`
}

// heldBackView is what holds an object back until an operator approves the run.
type heldBackView struct {
	RunID  int64  `json:"run_id"`
	Reason string `json:"reason"`
}

func viewObject(o staging.Object) objectView {
	v := objectView{
		Report: o.Name.Report, ObjectID: o.Name.Object, Fence: o.Name.Fence, Key: o.Key, State: o.State,
		Declared: measureOf(o.Declared), Size: o.Size, SHA256: o.SHA256, ETag: o.ETag,
		ContentType: o.ContentType, Filename: o.Filename, ReservedAt: o.ReservedAt, SealedAt: o.SealedAt,
		FoundAt: o.FoundAt,
	}
	if o.PartSize != 0 {
		v.Multipart = &inParts{PartSize: o.PartSize}
	}
	if f := o.Failure; f != nil {
		v.PurgeAttempts, v.PurgeError, v.RetryAt, v.Stuck = f.Attempts, f.Error, &f.RetryAt, f.Stuck()
	}
	switch o.Verdict {
	case "condemned", "deleted":
		v.CondemnedBecause, v.PurgeAfter = o.Reason, o.Until
	case "due":
		v.DueBecause, v.EligibleAt = o.Reason, o.Until
	case "held_back":
		v.KeptBecause, v.EligibleAt, v.HeldBack = &o.Verdict, o.Until, &heldBackView{*o.HeldBackRun, o.Reason}
	default:
		v.KeptBecause, v.EligibleAt = &o.Reason, o.Until
	}
	return v
}

// measure is the size and digest of bytes, as far as they are known.
type measure struct {
	Size   *int64 `json:"size,omitzero"`
	SHA256 string `json:"sha256,omitzero"`
}

func measureOf(b staging.Bytes) measure { return measure{Size: b.Size, SHA256: b.SHA256} }

func (s *Server) getObject(c echo.Context) error {
	name, err := objectName(c)
	if err != nil {
		return err
	}
	o, err := s.cfg.Objects.Object(c.Request().Context(), name)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewObject(o))
}

func (s *Server) listObjects(c echo.Context) error {
	p, err := pageOf[staging.After](c)
	if err != nil {
		return err
	}
	state, known := staging.ParseState(c.QueryParam("state"))
	if c.QueryParam("state") != "" && !known {
		return invalid("state", "state must be reserved, sealed, condemned or deleted.")
	}
	only := staging.Filter{State: state}
	if text := c.QueryParam("object_id"); text != "" {
		if only.Object, err = parseObjectID(text); err != nil {
			return err
		}
	}
	objects, err := s.cfg.Objects.Objects(c.Request().Context(), reportOf(c), only, p.from(), p.fetch())
	if err != nil {
		return err
	}
	return writeList(c, p, objects, viewObject, func(o staging.Object) staging.After {
		return staging.After{Fence: o.Name.Fence, Object: o.Name.Object}
	})
}
