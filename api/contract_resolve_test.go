package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestAReportResolvesToItsNewestPublication(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.get(t, july).Refused(t, 404, "report_not_found")
	w.grant(t, "july", "z0")
	w.get(t, july).Refused(t, 404, "not_published")
	w.DoAs(t, w.Worker, "DELETE", july+"/leases/z0", nil).Want(t, 200)

	fence := w.published(t, "july", "hello", doc{"content_type": "text/csv", "filename": "july.csv"})
	got := w.get(t, july).Want(t, 200)
	members(t, got, "report", "version", "object", "fence", "published_at", "metadata")
	equal(t, got, doc{"report": "july", "version": 1, "fence": fence, "metadata": doc{}, "object": doc{
		"object_id": "july.csv", "fence": fence, "key": "reports/july/" + fence + "/july.csv", "size": 5,
		"sha256": hexDigest("hello"), "content_type": "text/csv", "filename": "july.csv",
	}})
	if etag := got.Header.Get("ETag"); etag != `"1-`+fence+`"` {
		t.Errorf("ETag %s", etag)
	}
	if head := w.DoAs(t, w.Reader, "HEAD", july, nil).Want(t, 200); head.Header.Get("ETag") != got.Header.Get("ETag") {
		t.Errorf("HEAD: %v", head.Header)
	}
}

func TestAResolveIsNotModifiedUntilTheNextPublication(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", "hello", nil)
	etag := w.get(t, july).Want(t, 200).Header.Get("ETag")
	for _, condition := range []string{etag, "W/" + etag, `"x", ` + etag, `"x" , W/` + etag + `, "y"`, "*"} {
		got := w.get(t, july, "If-None-Match", condition).Want(t, 304)
		if got.Header.Get("ETag") != etag || len(got.Body) > 0 {
			t.Errorf("304 of %s: %v %q", condition, got.Header, got.Body)
		}
	}
	w.get(t, july, "If-None-Match", `"x"`, "If-None-Match", etag).Want(t, 304) // on two lines
	for _, condition := range []string{`"x"`, strings.Trim(etag, `"`), `"2-` + fence + `"`, `"` + etag} {
		w.get(t, july, "If-None-Match", condition).Want(t, 200)
	}
	w.publish(t, "july", "same", doc{"fence": fence, "from_version": 1, "expected_version": 1}).Want(t, 201)
	w.get(t, july, "If-None-Match", etag).Want(t, 200) // the same bytes, another version
}

func TestAWithdrawnReportSaysSinceWhen(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", "hello", nil)
	w.publish(t, "july", "w", doc{"fence": fence, "withdraw": true, "expected_version": 1}).Want(t, 201)
	for _, path := range []string{july, july + "?presign=true", july + "/content", july + "/publications/2/content"} {
		got := w.get(t, path, "If-None-Match", `"2-1.1"`).Refused(t, 410, "withdrawn")
		equal(t, got, doc{"version": 2})
		if etag := got.Header.Get("ETag"); etag != `"2-1.1"` {
			t.Errorf("%s: ETag %q", path, etag)
		}
	}
	equal(t, w.get(t, july+"/publications/2").Want(t, 200), doc{"object": nil, "visible": true})
	if got := w.get(t, july+"/publications/1/content").Want(t, 200); string(got.Body) != "hello" {
		t.Errorf("content of version 1: %q", got.Body)
	}
}

func TestAPresignedDownloadNeedsNoKey(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "hello", doc{"content_type": "text/csv", "filename": `Umsätze "Juli".csv`})
	etag := w.get(t, july).Header.Get("ETag")

	got := w.get(t, july+"?presign=true", "If-None-Match", etag).Want(t, 200)
	if cache := got.Header.Get("Cache-Control"); cache != "no-store" {
		t.Errorf("Cache-Control %q", cache)
	}
	download, _ := got.JSON(t)["download"].(doc)
	url, _ := download["url"].(string)
	response, err := http.Get(url) //nolint:noctx // ends with the servers
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 || string(body) != "hello" {
		t.Fatalf("download: %d %q %v", response.StatusCode, body, err)
	}
	if response.Header.Get("ETag") != download["etag"] || response.Header.Get("Content-Type") != "text/csv" ||
		!strings.Contains(response.Header.Get("Content-Disposition"), "Ums%C3%A4tze%20%22Juli%22.csv") {
		t.Errorf("download: %v, announced etag %v", response.Header, download["etag"])
	}
	for _, bad := range []string{"1", "yes", "TRUE"} {
		equal(t, w.get(t, july+"?presign="+bad).Refused(t, 400, "invalid_request"), doc{"field": "presign"})
	}
}

func TestAVersionsReceiptIsRead(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.get(t, july+"/publications/1").Refused(t, 404, "report_not_found")
	w.get(t, july+"/publications/1/content").Refused(t, 404, "report_not_found")
	fence := w.published(t, "july", "hello", nil)
	got := w.get(t, july+"/publications/1").Want(t, 200)
	members(t, got, "report", "version", "object", "fence", "published_at", "metadata", "visible", "idempotency_key")
	equal(t, got, doc{"report": "july", "version": 1, "fence": fence, "visible": true, "idempotency_key": "k1", "metadata": doc{}})
	for _, none := range []string{"2", "9223372036854775807"} {
		w.get(t, july+"/publications/"+none).Refused(t, 404, "version_not_found")
		w.get(t, july+"/publications/"+none+"/content").Refused(t, 404, "version_not_found")
	}
	for _, bad := range []string{"0", "-1", "x", "1.0", "9223372036854775808", "%201"} {
		equal(t, w.get(t, july+"/publications/"+bad).Refused(t, 400, "invalid_request"), doc{"field": "version"})
		equal(t, w.get(t, july+"/publications/"+bad+"/content").Refused(t, 400, "invalid_request"), doc{"field": "version"})
	}
}
