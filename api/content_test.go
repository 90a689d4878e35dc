package api_test

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/service"
)

func TestContentIsDescribedByItsHeaders(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	large := strings.Repeat("0123456789abcdef", 9<<20/16)
	for i, c := range []struct {
		object, content string
		declared        doc
		mediaType, name string
	}{
		{"july.csv", "hello", doc{"content_type": "text/csv", "filename": "July.csv"}, "text/csv", "July.csv"},
		{"nothing", "", doc{"content_type": "text/plain; charset=utf-8"}, "text/plain; charset=utf-8", "nothing"},
		{"bare", "hello", doc{}, "application/octet-stream", "bare"},
		{"quoted", "hello", doc{"filename": `say "hi".txt`}, "application/octet-stream", `say "hi".txt`},
		{"umlauts", "hello", doc{"filename": "Umsätze Juli 2026 – ü.csv"}, "application/octet-stream", "Umsätze Juli 2026 – ü.csv"},
		{"percent", "hello", doc{"filename": "100%;filename=evil.txt"}, "application/octet-stream", "100%;filename=evil.txt"},
		{"large", large, doc{"content_type": "application/pdf"}, "application/pdf", "large"},
	} {
		version := strconv.Itoa(i + 1)
		w.stage(t, "july", fence, c.object, c.content, c.declared)
		w.publish(t, "july", "k"+version, doc{"fence": fence, "object_id": c.object, "expected_version": i}).Want(t, 201)

		for _, path := range []string{july + "/content", july + "/publications/" + version + "/content"} {
			for _, method := range []string{"GET", "HEAD"} {
				got := w.DoAs(t, w.Reader, method, path, nil).Want(t, 200)
				if method == "GET" && string(got.Body) != c.content {
					t.Errorf("%s: %d bytes, want %d", path, len(got.Body), len(c.content))
				}
				if method == "HEAD" && len(got.Body) > 0 {
					t.Errorf("HEAD %s has a body", path)
				}
				for name, want := range map[string]string{
					"Content-Type": c.mediaType, "Content-Length": strconv.Itoa(len(c.content)),
					"ETag": `"` + hexDigest(c.content) + `"`, "Repr-Digest": reprDigest(c.content), "Accept-Ranges": "bytes",
					"Cache-Control": "no-cache", "X-Fenceline-Version": version, "X-Fenceline-Fence": fence,
					"X-Content-Type-Options": "nosniff", "Content-Range": "",
				} {
					if value := got.Header.Get(name); value != want {
						t.Errorf("%s %s of %s: %s %q, want %q", method, path, c.object, name, value, want)
					}
				}
				kind, parameters, err := mime.ParseMediaType(got.Header.Get("Content-Disposition"))
				if err != nil || kind != "attachment" || parameters["filename"] != c.name {
					t.Errorf("%s: Content-Disposition %q (%v)", c.object, got.Header.Get("Content-Disposition"), err)
				}
			}
		}
	}
}

func TestContentIsNotModifiedWhileItsBytesAreTheSame(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", "hello", nil)
	etag := `"` + hexDigest("hello") + `"`
	w.publish(t, "july", "again", doc{"fence": fence, "from_version": 1, "expected_version": 1}).Want(t, 201)
	for _, path := range []string{july + "/content", july + "/publications/1/content"} {
		for _, condition := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
			for _, method := range []string{"GET", "HEAD"} {
				got := w.DoAs(t, w.Reader, method, path, nil, "If-None-Match", condition, "Range", "bytes=0-1").Want(t, 304)
				if got.Header.Get("ETag") != etag || got.Header.Get("Cache-Control") != "no-cache" {
					t.Errorf("304: %v", got.Header)
				}
			}
		}
		w.get(t, path, "If-None-Match", `"x"`).Want(t, 200)
	}
}

func TestContentOfNothingSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, method := range []string{"GET", "HEAD"} {
		w.DoAs(t, w.Reader, method, july+"/content", nil).Want(t, 404)
		w.DoAs(t, w.Reader, method, july+"/publications/1/content", nil).Want(t, 404)
	}
	w.get(t, july+"/content").Refused(t, 404, "report_not_found")
	fence := w.grant(t, "july", "a7")
	w.get(t, july+"/content").Refused(t, 404, "not_published")
	w.publish(t, "july", "w", doc{"fence": fence, "withdraw": true}).Want(t, 201)
	for _, path := range []string{july + "/content", july + "/publications/1/content"} {
		w.DoAs(t, w.Reader, "HEAD", path, nil).Want(t, 410)
		w.DoAs(t, w.Reader, "HEAD", path+"?x=1", nil).Want(t, 400)
	}
}

func TestContentOfAnOldVersionIsThereUntilItIsCollected(t *testing.T) {
	t.Parallel()
	w := begin(t, func(c *service.Config) { c.Catalog.Retention = time.Hour })
	fence := w.published(t, "july", "first", nil)
	w.stage(t, "july", fence, "second", "second", nil)
	w.publish(t, "july", "k2", doc{"fence": fence, "object_id": "second", "expected_version": 1}).Want(t, 201)

	old := july + "/publications/1/content"
	if got := w.get(t, old).Want(t, 200); string(got.Body) != "first" || got.Header.Get("X-Fenceline-Version") != "1" {
		t.Errorf("version 1: %q %v", got.Body, got.Header)
	}
	w.DB.Advance(t, 2*time.Hour)
	w.collect(t, false)
	w.get(t, old).Refused(t, 410, "object_gone") // condemned
	w.DB.Advance(t, 48*time.Hour)
	w.collect(t, false)
	w.get(t, old, "Range", "bytes=0-1").Refused(t, 410, "object_gone") // deleted
	w.DoAs(t, w.Reader, "HEAD", old, nil).Want(t, 410)
	equal(t, w.get(t, july+"/publications/1").Want(t, 200), doc{"visible": false}) // its receipt stays
	w.publish(t, "july", "k3", doc{"fence": fence, "from_version": 1, "expected_version": 2}).Refused(t, 410, "object_gone")
	if got := w.get(t, july+"/content").Want(t, 200); string(got.Body) != "second" {
		t.Errorf("visible: %q", got.Body)
	}

	// The pointer is never left dangling by the service; somebody with the owner's rights could.
	w.DB.Exec(t, "ALTER TABLE object DISABLE TRIGGER USER")
	w.DB.Exec(t, `
		UPDATE object SET state = 'condemned', condemned_at = fenceline_now(), condemned_reason = 'discarded', purge_after = fenceline_now()
		WHERE object_id = 'second'`)
	w.get(t, july+"/content").Refused(t, 410, "object_gone")
}

func TestBytesThatWereChangedAreNeverStreamed(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for name, tamper := range map[string]func(key string){
		"other":   func(key string) { w.Storage.Put(t, key, "HELLO") },
		"longer":  func(key string) { w.Storage.Put(t, key, "hello!") },
		"shorter": func(key string) { w.Storage.Put(t, key, "hell") },
		"empty":   func(key string) { w.Storage.Put(t, key, "") },
		"deleted": func(key string) { w.Storage.Delete(t, key) },
	} {
		fence := w.published(t, name, "hello", doc{"content_type": "text/csv"})
		tamper("reports/" + name + "/" + fence + "/july.csv")
		for _, path := range []string{"/content", "/publications/1/content"} {
			path = "/v1/reports/" + name + path
			for _, part := range []string{"", "bytes=0-1", "bytes=-1", "bytes=2-"} {
				got := w.get(t, path, "Range", part).Refused(t, 502, "object_damaged")
				for _, header := range []string{"ETag", "Repr-Digest", "Content-Range", "Content-Disposition", "Accept-Ranges"} {
					if value := got.Header.Get(header); value != "" {
						t.Errorf("%s: the problem has the header %s: %q of the bytes", name, header, value)
					}
				}
			}
			w.DoAs(t, w.Reader, "HEAD", path, nil).Want(t, http.StatusBadGateway)
		}
	}
}

func TestBytesThatAreAlteredOnTheirWayAreNotPassedOnAsAWhole(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", strings.Repeat("hello", 100_000), nil)
	// What the storage has under the sealed ETag is no longer what was sealed.
	w.DB.Exec(t, "ALTER TABLE object DISABLE TRIGGER USER")
	w.DB.Exec(t, "UPDATE object SET sha256 = sha256('another'::bytea)")
	response, err := http.DefaultClient.Do(w.request(t, w.Reader, "GET", july+"/content", nil))
	if err != nil {
		return // cut off before the first byte
	}
	defer response.Body.Close()
	var got strings.Builder
	if _, err := copyTo(&got, response.Body); err == nil && response.StatusCode == 200 {
		t.Errorf("%d bytes of fence %s pass for the whole", got.Len(), fence)
	}
}
