package api_test

import (
	"fmt"
	"strconv"
	"testing"
)

func TestAPartOfTheContentIsSent(t *testing.T) {
	t.Parallel()
	w := begin(t)
	const content = "0123456789"
	w.published(t, "july", content, doc{"content_type": "text/csv"})
	etag := `"` + hexDigest(content) + `"`
	for _, c := range []struct {
		header      string
		first, last int
	}{
		{"bytes=0-0", 0, 0},
		{"bytes=0-3", 0, 3},
		{"bytes=4-7", 4, 7},
		{"bytes=7-", 7, 9},
		{"bytes=0-", 0, 9},
		{"bytes=9-9", 9, 9},
		{"bytes=5-99", 5, 9},
		{"bytes=5-99999999999999999999", 5, 9},
		{"bytes=-3", 7, 9},
		{"bytes=-10", 0, 9},
		{"bytes=-99", 0, 9},
		{"Bytes= 2-4 ", 2, 4},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, path := range []string{july + "/content", july + "/publications/1/content"} {
				got := w.DoAs(t, w.Reader, method, path, nil, "Range", c.header).Want(t, 206)
				want := content[c.first : c.last+1]
				if method == "GET" && string(got.Body) != want {
					t.Errorf("%s: %q, want %q", c.header, got.Body, want)
				}
				for name, value := range map[string]string{
					"Content-Range":  fmt.Sprintf("bytes %d-%d/10", c.first, c.last),
					"Content-Length": strconv.Itoa(len(want)), "ETag": etag, "Repr-Digest": reprDigest(content),
					"Content-Type": "text/csv",
				} {
					if got.Header.Get(name) != value {
						t.Errorf("%s %s: %s %q, want %q", method, c.header, name, got.Header.Get(name), value)
					}
				}
			}
		}
	}
}

func TestARangeThatIsNoSingleRangeOfBytesIsIgnored(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "0123456789", nil)
	for _, header := range []string{
		"bytes=0-1,4-5", "bytes=0-1, -1", "lines=0-1", "bytes", "bytes=", "bytes=-", "bytes=x-1", "bytes=1-x", "bytes=4-2",
		"bytes=+1-2", "bytes=--1", "0-1", "bytes=1",
	} {
		got := w.get(t, july+"/content", "Range", header).Want(t, 200)
		if string(got.Body) != "0123456789" || got.Header.Get("Content-Range") != "" {
			t.Errorf("%s: %q %v", header, got.Body, got.Header)
		}
	}
}

func TestARangeBeyondTheContentIsNotSatisfiable(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "0123456789", nil)
	w.published(t, "nothing", "", nil)
	for report, headers := range map[string][]string{
		"july":    {"bytes=10-", "bytes=10-20", "bytes=99-", "bytes=-0", "bytes=99999999999999999999-"},
		"nothing": {"bytes=0-", "bytes=0-0", "bytes=-1"},
	} {
		size := map[string]string{"july": "10", "nothing": "0"}[report]
		for _, header := range headers {
			for _, path := range []string{"/content", "/publications/1/content"} {
				got := w.get(t, "/v1/reports/"+report+path, "Range", header).Refused(t, 416, "range_not_satisfiable")
				if value := got.Header.Get("Content-Range"); value != "bytes */"+size {
					t.Errorf("%s: Content-Range %q", header, value)
				}
				w.DoAs(t, w.Reader, "HEAD", "/v1/reports/"+report+path, nil, "Range", header).Want(t, 416)
			}
		}
	}
	if got := w.get(t, "/v1/reports/nothing/content").Want(t, 200); len(got.Body) != 0 || got.Header.Get("Content-Length") != "0" {
		t.Errorf("an empty object: %q %v", got.Body, got.Header)
	}
}

func TestAPartIsSentOnlyOfTheBytesThatItIsAskedOf(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "0123456789", nil)
	etag := `"` + hexDigest("0123456789") + `"`
	for condition, want := range map[string]int{
		etag: 206, `"other"`: 200, "W/" + etag: 200, "Sun, 29 Nov 2026 17:15:38 GMT": 200,
	} {
		got := w.get(t, july+"/content", "Range", "bytes=0-1", "If-Range", condition).Want(t, want)
		if want == 200 && string(got.Body) != "0123456789" {
			t.Errorf("If-Range %s: %q", condition, got.Body)
		}
		w.get(t, july+"/content", "If-Range", condition).Want(t, 200)
	}
}
