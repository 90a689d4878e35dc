package api

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/staging"
)

func (s *Server) getContent(c echo.Context) error {
	p, err := s.cfg.Catalog.Visible(c.Request().Context(), reportOf(c))
	if err != nil {
		return err
	}
	return s.sendContent(c, p)
}

func (s *Server) getVersionContent(c echo.Context) error {
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	p, err := s.cfg.Catalog.Version(c.Request().Context(), reportOf(c), version)
	if err != nil {
		return err
	}
	if p.Object == nil {
		return &catalog.WithdrawnError{Version: p.Version, Fence: p.Fence, PublishedAt: p.PublishedAt}
	}
	if p.ErasedAt != nil {
		return catalog.ErrErased
	}
	return s.sendContent(c, p)
}

// sendContent streams the bytes of a publication, or the part of them that was asked for.
func (s *Server) sendContent(c echo.Context, p catalog.Publication) error {
	o, request := p.Object, c.Request()
	tag := `"` + o.SHA256 + `"`
	if matches(request.Header.Values("If-None-Match"), tag) {
		c.Response().Header().Set("ETag", tag)
		c.Response().Header().Set(echo.HeaderCacheControl, "no-cache")
		return c.NoContent(http.StatusNotModified)
	}
	part, partial, err := partOf(request, tag, o.Size)
	if err != nil {
		return err
	}
	body, err := s.cfg.Objects.Open(request.Context(), o.Name, part)
	if err != nil {
		return err
	}
	defer body.Close()

	if err := describeContent(c.Response().Header(), p, tag); err != nil {
		return err
	}
	status, length := http.StatusOK, o.Size
	if partial {
		status, length = http.StatusPartialContent, part.Length
		c.Response().Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.Offset, part.Offset+part.Length-1, o.Size))
	}
	c.Response().Header().Set(echo.HeaderContentLength, strconv.FormatInt(length, 10))
	if request.Method == http.MethodHead {
		return c.NoContent(status)
	}
	return stream(c, status, body)
}

// describeContent sets the headers that say what the bytes are.
func describeContent(h http.Header, p catalog.Publication, tag string) error {
	o := p.Object
	digest, err := hex.DecodeString(o.SHA256)
	if err != nil {
		return fmt.Errorf("decode digest: %w", err)
	}
	h.Set(echo.HeaderContentType, cmp.Or(o.ContentType, echo.MIMEOctetStream))
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set(echo.HeaderContentDisposition, mime.FormatMediaType("attachment",
		map[string]string{"filename": cmp.Or(o.Filename, string(o.Name.Object))}))
	h.Set("ETag", tag)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest)+":") // RFC 9530
	h.Set(echo.HeaderCacheControl, "no-cache")
	h.Set("X-Fenceline-Version", strconv.FormatInt(p.Version, 10))
	h.Set("X-Fenceline-Fence", p.Fence.String())
	return nil
}

// stream sends the bytes. The status goes out only with the first of them, so that what is wrong from the
// start is still a problem document; what goes wrong later breaks the connection off.
func stream(c echo.Context, status int, body io.Reader) error {
	first := make([]byte, chunk)
	n, err := io.ReadFull(body, first)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		undescribe(c.Response().Header())
		return err
	}
	c.Response().WriteHeader(status)
	if _, err := c.Response().Write(first[:n]); err != nil {
		return fmt.Errorf("send content: %w", err)
	}
	if _, err := io.Copy(c.Response(), body); err != nil {
		return fmt.Errorf("send content: %w", err)
	}
	return nil
}

// undescribe takes back what was said of bytes that will not be sent.
func undescribe(h http.Header) {
	for _, name := range []string{
		"ETag", "Accept-Ranges", "Repr-Digest", "Content-Range", "X-Fenceline-Version", "X-Fenceline-Fence",
		echo.HeaderContentDisposition, echo.HeaderContentLength, echo.HeaderCacheControl,
	} {
		h.Del(name)
	}
}

// partOf reads the Range header: the part of size bytes that is asked for, and whether it is a part at all.
// More than one range, and a unit that is not bytes, may be ignored (RFC 9110), and are.
func partOf(r *http.Request, tag string, size int64) (part staging.Range, partial bool, err error) {
	if r.Header.Get("Range") == "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return part, false, nil
	}
	if condition := r.Header.Get("If-Range"); condition != "" && condition != tag {
		return part, false, nil
	}
	offset, length, kind := parseRange(r.Header.Get("Range"), size)
	switch kind {
	case rangeIgnored:
		return part, false, nil
	case rangeUnsatisfiable:
		return part, false, newProblem(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable",
			fmt.Sprintf("There are %d bytes.", size)).withHeader("Content-Range", fmt.Sprintf("bytes */%d", size))
	}
	return staging.Range{Offset: offset, Length: length}, true, nil
}
