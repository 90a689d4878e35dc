package api

import (
	"fmt"
	"net/http"
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
	if wait := c.QueryParam("wait_ms"); wait != "" && wait != "0" {
		return invalid("wait_ms", "wait_ms must be 0: this release does not wait for changes yet.")
	}
	p, err := s.cfg.Catalog.Visible(c.Request().Context(), reportOf(c))
	if err != nil {
		return err
	}
	view, header, tag := viewReport(p), c.Response().Header(), versionTag(p.Version, p.Fence)
	if !presign {
		header.Set("ETag", tag)
		header.Set(echo.HeaderCacheControl, "no-cache")
		if matches(c.Request().Header.Values("If-None-Match"), tag) {
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
