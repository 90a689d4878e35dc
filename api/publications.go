package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

const (
	longestIdempotencyKey = 255
	largestMetadata       = 8 << 10 // bytes, as JSON
)

// publishBody asks for one of three: an object staged under the fence, an older version, or nothing.
type publishBody struct {
	Fence           *string           `json:"fence"`
	ObjectID        *string           `json:"object_id"`
	FromVersion     *int64            `json:"from_version"`
	Withdraw        bool              `json:"withdraw"`
	ExpectedVersion *int64            `json:"expected_version"`
	Metadata        map[string]string `json:"metadata"`
}

func (s *Server) publish(c echo.Context) error {
	key, err := idempotencyKey(c.Request().Header.Values("Idempotency-Key"))
	if err != nil {
		return err
	}
	body, err := decode[publishBody](c)
	if err != nil {
		return err
	}
	request, err := body.request()
	if err != nil {
		return err
	}
	request.Report, request.IdempotencyKey, request.By = reportOf(c), key, keyOf(c).ID
	receipt, err := s.cfg.Catalog.Publish(c.Request().Context(), request)
	if err != nil {
		return err
	}
	answer := struct {
		Result      string           `json:"result"`
		Report      fencing.ReportID `json:"report"`
		Version     int64            `json:"version"`
		Object      *receiptView     `json:"object"`
		Fence       fencing.Fence    `json:"fence"`
		PublishedAt time.Time        `json:"published_at"`
		Visible     *bool            `json:"visible,omitzero"`
	}{
		Result: "applied", Report: receipt.Report, Version: receipt.Version, Object: viewReceipt(receipt.Object),
		Fence: receipt.Fence, PublishedAt: receipt.PublishedAt,
	}
	if !receipt.Duplicate {
		noteResult(c, answer.Result)
		return writeJSON(c, http.StatusCreated, answer)
	}
	answer.Result, answer.Visible = "duplicate", &receipt.Visible
	noteResult(c, answer.Result)
	return writeJSON(c, http.StatusOK, answer)
}

// idempotencyKey reads the header, whose value may stand in quotes.
func idempotencyKey(values []string) (string, error) {
	missing := newProblem(http.StatusBadRequest, "missing_idempotency_key",
		"A publish needs the header Idempotency-Key, made once for it and sent with each repetition.").
		with("field", "Idempotency-Key")
	if len(values) == 0 {
		return "", missing
	}
	key := unquoted(values[0])
	if key == "" {
		return "", missing
	}
	if len(values) > 1 || !isIdempotencyKey(key) {
		return "", invalid("Idempotency-Key", "The header must be sent once, with 1 to 255 printable ASCII characters.")
	}
	return key, nil
}

// unquoted takes away the quotes that may stand around an idempotency key.
func unquoted(key string) string {
	if len(key) >= 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		return key[1 : len(key)-1]
	}
	return key
}

func isIdempotencyKey(key string) bool {
	return key != "" && len(key) <= longestIdempotencyKey &&
		!strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
}

// request checks the body, and makes the catalog's request of it.
func (b publishBody) request() (catalog.Request, error) {
	r := catalog.Request{Withdraw: b.Withdraw, ExpectedVersion: b.ExpectedVersion, Metadata: b.Metadata}
	if b.Fence == nil {
		return r, newProblem(http.StatusBadRequest, "missing_fence", "A publish needs the fence of its grant.").with("field", "fence")
	}
	var err error
	if r.Fence, err = parseFence(*b.Fence); err != nil {
		return r, err
	}
	asked := 0
	if b.ObjectID != nil {
		asked++
		if r.Object, err = parseObjectID(*b.ObjectID); err != nil {
			return r, err
		}
	}
	if b.FromVersion != nil {
		asked++
		r.FromVersion = *b.FromVersion
		if r.FromVersion < 1 {
			return r, invalid("from_version", "from_version must be a version, from 1.")
		}
	}
	if b.Withdraw {
		asked++
	}
	if asked != 1 {
		return r, invalid("object_id", "Say exactly one of object_id, from_version and withdraw: true.")
	}
	if b.ExpectedVersion != nil && *b.ExpectedVersion < 0 {
		return r, invalid("expected_version", "expected_version must be a version, or 0 for none.")
	}
	metadata, err := json.Marshal(b.Metadata, wire)
	if err != nil || len(metadata) > largestMetadata {
		return r, invalid("metadata", "metadata must not be larger than 8192 bytes of JSON.")
	}
	return r, nil
}

// receiptView is the object of a publication as it is shown.
type receiptView struct {
	ObjectID    fencing.ObjectID `json:"object_id"`
	Fence       fencing.Fence    `json:"fence"` // of the grant that staged it
	Key         string           `json:"key"`
	Size        int64            `json:"size"`
	SHA256      string           `json:"sha256"`
	ContentType string           `json:"content_type,omitzero"`
	Filename    string           `json:"filename,omitzero"`
}

func viewReceipt(o *catalog.Object) *receiptView {
	if o == nil {
		return nil
	}
	return &receiptView{
		ObjectID: o.Name.Object, Fence: o.Name.Fence, Key: o.Key, Size: o.Size, SHA256: o.SHA256,
		ContentType: o.ContentType, Filename: o.Filename,
	}
}

// publicationView is a version as the history shows it.
type publicationView struct {
	Report         fencing.ReportID  `json:"report"`
	Version        int64             `json:"version"`
	Object         *receiptView      `json:"object"` // null: withdrawn
	Fence          fencing.Fence     `json:"fence"`
	PublishedAt    time.Time         `json:"published_at"`
	Metadata       map[string]string `json:"metadata"`
	Visible        bool              `json:"visible"` // it is the newest
	IdempotencyKey string            `json:"idempotency_key"`
	HeldAt         *time.Time        `json:"held_at,omitzero"`
	ErasedAt       *time.Time        `json:"erased_at,omitzero"`
}

func viewPublication(p catalog.Publication) publicationView {
	return publicationView{
		Report: p.Report, Version: p.Version, Object: viewReceipt(p.Object), Fence: p.Fence, PublishedAt: p.PublishedAt,
		Metadata: p.Metadata, Visible: p.Visible, IdempotencyKey: p.IdempotencyKey,
		HeldAt: p.HeldAt, ErasedAt: p.ErasedAt,
	}
}

func (s *Server) listPublications(c echo.Context) error {
	p, err := pageOf[int64](c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	var found []catalog.Publication
	if c.QueryParams().Has("idempotency_key") {
		key := unquoted(c.QueryParam("idempotency_key"))
		if !isIdempotencyKey(key) {
			return invalid("idempotency_key", "idempotency_key must have 1 to 255 printable ASCII characters.")
		}
		found, err = s.cfg.Catalog.VersionByKey(ctx, reportOf(c), key)
	} else {
		found, err = s.cfg.Catalog.Versions(ctx, reportOf(c), p.from(), p.fetch())
	}
	if err != nil {
		return err
	}
	return writeList(c, p, found, viewPublication, func(p catalog.Publication) int64 { return p.Version })
}

// versionOf reads the version in the path.
func versionOf(c echo.Context) (int64, error) {
	version, err := strconv.ParseInt(c.Param("version"), 10, 64)
	if err != nil || version < 1 {
		return 0, invalid("version", "A version is a whole number from 1.")
	}
	return version, nil
}

func (s *Server) getPublication(c echo.Context) error {
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	p, err := s.cfg.Catalog.Version(c.Request().Context(), reportOf(c), version)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewPublication(p))
}
