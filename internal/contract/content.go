package contract

import (
	"crypto/sha256"
	"encoding/base64"
)

func contentCases() []Case {
	const table = "Content"
	return []Case{
		{Table: table, Row: "200, Content-Type", Steps: contentWhole},
		{Table: table, Row: "200, Content-Length, ETag, Repr-Digest | HEAD", Steps: contentHead},
		{Table: table, Row: "206", Steps: contentRange},
		{Table: table, Row: "416", Steps: contentBeyond},
		{Table: table, Row: "304", Steps: contentKnown},
		{Table: table, Row: "404 report_not_found", Steps: contentNone},
		{Table: table, Row: "404 version_not_found", Steps: contentNoVersion},
		{Table: table, Row: "410 erased", Steps: contentErased},
		{Table: table, Row: "410 object_gone", Alone: true, Steps: contentCollected},
		{Table: table, Row: "502 object_damaged", Steps: contentDamaged},
		{Table: table, Row: "503 unavailable", Alone: true, Steps: contentWithoutStorage},
	}
}

func contentWhole(w *Walk) {
	w.published("hello")
	for _, path := range []string{"content", "publications/1/content"} {
		got := w.See(w.Reader("GET", path, nil))
		sum := sha256.Sum256([]byte("hello"))
		for name, want := range map[string]string{
			"Content-Type": "text/csv", "Content-Length": "5", "ETag": `"` + digest("hello") + `"`,
			"Repr-Digest": "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":",
		} {
			w.Check(got.Header.Get(name) == want, "%s is %q, not %q", name, got.Header.Get(name), want)
		}
		w.Check(string(got.Body) == "hello", "the bytes are %q", got.Body)
	}
}

func contentHead(w *Walk) {
	w.published("hello")
	got := w.See(w.Reader("HEAD", "content", nil))
	w.Check(got.Header.Get("Content-Length") == "5" && len(got.Body) == 0, "Content-Length %s, %d bytes", got.Header.Get("Content-Length"), len(got.Body))
}

func contentRange(w *Walk) {
	w.published("hello")
	for asked, want := range map[string]string{"bytes=1-2": "el", "bytes=3-": "lo", "bytes=-1": "o", "bytes=4-100": "o"} {
		got := w.See(w.Reader("GET", "content", nil, "Range", asked))
		w.Check(string(got.Body) == want, "%s: %q, not %q", asked, got.Body, want)
	}
}

func contentBeyond(w *Walk) {
	w.published("hello")
	got := w.See(w.Reader("GET", "content", nil, "Range", "bytes=5-"))
	w.Check(got.Header.Get("Content-Range") == "bytes */5", "Content-Range %q", got.Header.Get("Content-Range"))
}

func contentKnown(w *Walk) {
	w.published("hello")
	w.See(w.Reader("GET", "content", nil, "If-None-Match", `"`+digest("hello")+`"`))
	w.Want(w.Reader("GET", "content", nil, "If-None-Match", `"`+digest("x")+`"`), 200)
}

func contentNone(w *Walk) {
	w.See(w.Reader("GET", "content", nil))
	fence := w.grant("a7")
	w.See(w.Reader("GET", "content", nil))
	w.Want(w.publish("k1", body{"fence": fence, "withdraw": true}), 201)
	w.See(w.Reader("GET", "content", nil))
	w.See(w.Reader("GET", "publications/1/content", nil))
}

func contentNoVersion(w *Walk) {
	w.published("hello")
	w.See(w.Reader("GET", "publications/2/content", nil))
}

func contentErased(w *Walk) {
	w.superseded()
	w.Want(w.Operator("POST", "publications/1/erase", body{"reason": "x"}), 200)
	w.See(w.Reader("GET", "publications/1/content", nil))
	w.Want(w.Reader("GET", "content", nil), 200)
}

func contentCollected(w *Walk) {
	fence := w.superseded()
	w.release("a7")
	w.Await("the collector has condemned the superseded object", func() bool {
		w.collect(false)
		return w.Worker("GET", object(fence, "o1"), nil).Text("state") != "sealed"
	})
	w.See(w.Reader("GET", "publications/1/content", nil))
	w.Want(w.Reader("GET", "content", nil), 200)
	for _, got := range []Answer{
		w.hold("1"), w.seal(fence, "o1"), w.publish("k3", body{"fence": fence, "from_version": 1, "expected_version": 2}),
	} {
		w.Check(got.Text("code") == "object_gone", "%s %s: %s, not object_gone", got.Method, got.Path, got)
	}
}

func contentDamaged(w *Walk) {
	fence := w.published("hello")
	w.Must(w.Faults.Overwrite("reports/"+w.report+"/"+fence+"/o1", "HELLO"))
	w.See(w.Reader("GET", "content", nil))
	w.See(w.Reader("GET", "content", nil, "Range", "bytes=0-1"))
}

func contentWithoutStorage(w *Walk) {
	w.published("hello")
	w.whileStorageIsAway(func() {
		w.See(w.Reader("GET", "content", nil))
		w.Want(w.Reader("GET", "", nil), 200) // resolving does not need it
	})
	w.Want(w.Reader("GET", "content", nil), 200)
}
