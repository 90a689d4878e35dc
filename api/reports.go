package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

// reportView is what readers see of a report: its newest publication.
type reportView struct {
	Report      fencing.ReportID  `json:"report"`
	Version     int64             `json:"version"`
	Object      *receiptView      `json:"object"` // null in the list of reports: withdrawn
	Fence       fencing.Fence     `json:"fence"`
	PublishedAt time.Time         `json:"published_at"`
	Metadata    map[string]string `json:"metadata"`
	Download    *downloadView     `json:"download,omitzero"`
}

// downloadView is a URL from which the bytes can be had without a key.
type downloadView struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
	ETag      string    `json:"etag"` // that the storage will answer with; the URL cannot demand it
}

func viewReport(p catalog.Publication) reportView {
	return reportView{
		Report: p.Report, Version: p.Version, Object: viewReceipt(p.Object), Fence: p.Fence,
		PublishedAt: p.PublishedAt, Metadata: p.Metadata,
	}
}

// versionTag is the ETag of what a report resolves to: it changes with every publication, also with one of
// the same bytes.
func versionTag(version int64, fence fencing.Fence) string {
	return fmt.Sprintf(`"%d-%s"`, version, fence)
}

func (s *Server) getReport(c echo.Context) error {
	presign, err := queryBool(c, "presign")
	if err != nil {
		return err
	}
	wait, err := queryWait(c)
	if err != nil {
		return err
	}
	known := c.Request().Header.Values("If-None-Match")
	if presign { // which is of no use to a reader that has it already
		known, wait = nil, 0
	}
	p, err := s.awaitVisible(c.Request().Context(), reportOf(c), known, wait, s.keyIsGood(c))
	if err != nil {
		return err
	}
	view, header, tag := viewReport(p), c.Response().Header(), versionTag(p.Version, p.Fence)
	if !presign {
		header.Set("ETag", tag)
		header.Set(echo.HeaderCacheControl, "no-cache")
		if matches(known, tag) {
			return c.NoContent(http.StatusNotModified)
		}
		return writeJSON(c, http.StatusOK, view)
	}
	download, etag, err := s.cfg.Objects.PresignDownload(c.Request().Context(), p.Object.Name)
	if err != nil {
		return err
	}
	header.Set("ETag", tag)
	view.Download = &downloadView{URL: download.URL, ExpiresAt: download.ExpiresAt, ETag: etag}
	header.Set(echo.HeaderCacheControl, "no-store")
	return writeJSON(c, http.StatusOK, view)
}

// queryWait reads how long a reader wants to wait for a change.
func queryWait(c echo.Context) (time.Duration, error) {
	text := c.QueryParam("wait_ms")
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		ms = -1
	}
	wait := time.Duration(ms) * time.Millisecond
	return wait, checkWait(wait)
}

// awaitVisible resolves a report, and while that is what the reader knows already, waits for a change. A reader
// that says nothing of what it knows waits for what is not there: the first publication, or the end of a withdrawal.
func (s *Server) awaitVisible(ctx context.Context, report fencing.ReportID, known []string, wait time.Duration, mayStill func(context.Context) error) (catalog.Publication, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if wait > 0 {
		var stop context.CancelFunc
		waiting, stop = s.untilDraining(waiting)
		defer stop()
	}
	for {
		p, err := s.cfg.Catalog.Visible(ctx, report)
		version, waits := worthWaiting(p, err, known)
		if !waits || waiting.Err() != nil {
			return p, err
		}
		if full := s.cfg.Catalog.AwaitChange(waiting, report, version); errors.Is(full, catalog.ErrTooManyWatching) {
			return p, full
		}
		if err := mayStill(ctx); err != nil {
			return p, err
		}
	}
}

// worthWaiting tells whether a reader that knows those tags has not got anything new, and the version that it saw.
func worthWaiting(p catalog.Publication, err error, known []string) (version int64, waits bool) {
	if err == nil {
		return p.Version, matches(known, versionTag(p.Version, p.Fence))
	}
	if w, ok := errors.AsType[*catalog.WithdrawnError](err); ok {
		return w.Version, len(known) == 0 || matches(known, versionTag(w.Version, w.Fence))
	}
	return 0, errors.Is(err, catalog.ErrNotPublished) || errors.Is(err, fencing.ErrReportNotFound)
}

// namesOf is the range of reports' ids as the catalog takes it.
func namesOf(r Range) catalog.Names { return catalog.Names{From: r.From, Below: r.To} }

func (s *Server) listReports(c echo.Context) error {
	p, err := pageOf[fencing.ReportID](c)
	if err != nil {
		return err
	}
	prefix := c.QueryParam("prefix")
	if prefix != "" && !isReportID(prefix) {
		return invalid("prefix", "prefix must be the beginning of a report's id.")
	}
	names := keyOf(c).Pattern.Range().And(PrefixRange(prefix))
	reports, err := s.cfg.Catalog.Reports(c.Request().Context(), namesOf(names), p.from(), p.fetch())
	if err != nil {
		return err
	}
	return writeList(c, p, reports, viewReport, func(p catalog.Publication) fencing.ReportID { return p.Report })
}
