package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/testservice"
)

const partSize = 5 << 20

// threeParts are the bytes of two whole parts and a short one, each other than the rest.
func threeParts() string {
	return strings.Repeat("a", partSize) + strings.Repeat("b", partSize) + "the end"
}

// multipart declares content as one that is uploaded in parts.
func multipart(content string) doc {
	return doc{"content_type": "text/plain", "size": len(content), "multipart": doc{"part_size": partSize}}
}

// told is what a reservation says of the parts.
type told struct {
	Upload struct {
		Parts []struct {
			Number      int
			Method, URL string
			Headers     map[string]string
		}
		PartSize  int `json:"part_size"`
		PartCount int `json:"part_count"`
	}
}

func toldOf(t *testing.T, reserved testservice.Answer) told {
	t.Helper()
	var parts told
	if err := json.Unmarshal(reserved.Body, &parts); err != nil {
		t.Fatal(err)
	}
	return parts
}

// uploadParts uploads the parts of content, the last one first, and returns them as a seal names them.
func uploadParts(t *testing.T, reserved testservice.Answer, content string) (parts []doc) {
	t.Helper()
	for _, p := range slices.Backward(toldOf(t, reserved).Upload.Parts) {
		from := (p.Number - 1) * partSize
		status, etag := sendPart(t, p.Method, p.URL, p.Headers, content[from:min(from+partSize, len(content))])
		if status != http.StatusOK {
			t.Fatalf("part %d: %d", p.Number, status)
		}
		parts = append(parts, doc{"number": p.Number, "etag": etag})
	}
	return parts
}

// sendPart uploads the bytes of one part.
func sendPart(t *testing.T, method, url string, headers map[string]string, content string) (status int, etag string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("ETag")
}

func TestAnObjectInPartsIsSealedAndPublished(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence, content := w.grant(t, "july", "a7"), threeParts()
	path, declared := objectPath("july", fence, "july.csv"), multipart(content)
	reserved := w.DoAs(t, w.Worker, "PUT", path, declared).Want(t, 201)
	members(t, reserved, "object_id", "fence", "key", "state", "upload")
	if got := toldOf(t, reserved).Upload; len(got.Parts) != 3 || got.PartSize != partSize || got.PartCount != 3 {
		t.Fatalf("upload %+v, want three parts of %d", got, partSize)
	}
	again := w.DoAs(t, w.Worker, "PUT", path, declared).Want(t, 200)
	parts := slices.Concat(uploadParts(t, reserved, content)[:1], uploadParts(t, again, content)[1:]) // the URLs are of one upload

	for range 2 {
		got := w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Want(t, 200)
		equal(t, got, doc{"state": "sealed", "size": len(content), "sha256": hexDigest(content)})
	}
	equal(t, w.DoAs(t, w.Worker, "POST", path+"/seal", nil).Want(t, 200), doc{"sha256": hexDigest(content)})
	equal(t, w.DoAs(t, w.Worker, "GET", path, nil).Want(t, 200), doc{"state": "sealed", "multipart": doc{"part_size": partSize}})
	w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "july.csv"}).Want(t, 201)
	got := w.get(t, "/v1/reports/july/content").Want(t, 200)
	if string(got.Body) != content || got.Header.Get("Repr-Digest") != reprDigest(content) || got.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("read were %d bytes, headers %v", len(got.Body), got.Header)
	}
	if left := w.Storage.Uploads(t); len(left) > 0 {
		t.Errorf("uploads are left: %q", left)
	}
}

func TestADeclarationInPartsMustBePossible(t *testing.T) {
	t.Parallel()
	w := begin(t)
	path := objectPath("july", w.grant(t, "july", "a7"), "o")
	for _, c := range []struct {
		field    string
		declared any
	}{
		{"multipart", doc{"size": 5, "multipart": 5}},
		{"multipart.part_size", doc{"size": 5, "multipart": doc{}}},
		{"multipart.part_size", doc{"size": 5, "multipart": doc{"part_size": partSize - 1}}},
		{"multipart.part_size", doc{"size": 5, "multipart": doc{"part_size": 5<<30 + 1}}},
		{"multipart.part_size", doc{"size": 10_000*partSize + 1, "multipart": doc{"part_size": partSize}}}, // 10 001 parts
		{"multipart.size", doc{"size": 5, "multipart": doc{"size": 5}}},
		{"size", doc{"multipart": doc{"part_size": partSize}}},
		{"size", doc{"size": 0, "multipart": doc{"part_size": partSize}}},
		{"size", doc{"size": 5<<40 + 1, "multipart": doc{"part_size": 5 << 30}}},
		{"size", doc{"size": 5<<30 + 1}}, // as a whole
	} {
		got := w.DoAs(t, w.Worker, "PUT", path, c.declared).Refused(t, 400, "invalid_request")
		if got.String(t, "field") != c.field {
			t.Errorf("%v: %s", c.declared, got.Body)
		}
	}
	w.DoAs(t, w.Worker, "PUT", path, multipart("hello")).Want(t, 201)
	for name, other := range map[string]doc{
		"another part size": {"content_type": "text/plain", "size": 5, "multipart": doc{"part_size": partSize + 1}},
		"as a whole":        {"content_type": "text/plain", "size": 5},
	} {
		t.Log(name)
		w.DoAs(t, w.Worker, "PUT", path, other).Refused(t, 422, "object_id_reused")
	}
	w.DoAs(t, w.Worker, "PUT", path+"2", doc{"size": 5}).Want(t, 201)
	w.DoAs(t, w.Worker, "PUT", path+"2", doc{"size": 5, "multipart": doc{"part_size": partSize}}).Refused(t, 422, "object_id_reused")
	w.DoAs(t, w.Worker, "PUT", path+"2", raw(`{"size":5,"multipart":null}`)).Want(t, 200) // null is absent
}

func TestTheURLsOfManyPartsAreAskedForAThousandAtATime(t *testing.T) {
	t.Parallel()
	w := begin(t)
	path := objectPath("july", w.grant(t, "july", "a7"), "o")
	declared := doc{"size": 10_000 * partSize, "multipart": doc{"part_size": partSize}}
	numbers := func(a testservice.Answer) string {
		parts := toldOf(t, a).Upload.Parts
		return fmt.Sprint(parts[0].Number, len(parts), parts[len(parts)-1].Number)
	}
	if got := numbers(w.DoAs(t, w.Worker, "PUT", path, declared).Want(t, 201)); got != "1 1000 1000" {
		t.Errorf("without parts: %s", got)
	}
	for query, want := range map[string]string{"1001-2000": "1001 1000 2000", "9999-10500": "9999 2 10000", "7-7": "7 1 7"} {
		if got := numbers(w.DoAs(t, w.Worker, "PUT", path+"?parts="+query, declared).Want(t, 200)); got != want {
			t.Errorf("parts=%s: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"1", "0-5", "5-1", "1-1001", "10001-10002", "a-b", "-5", "1-2-3", "01-2", "99999999999-99999999999"} {
		equal(t, w.DoAs(t, w.Worker, "PUT", path+"?parts="+query, declared).Refused(t, 400, "invalid_request"), doc{"field": "parts"})
	}
	equal(t, w.DoAs(t, w.Worker, "PUT", path+"2?parts=1-2", doc{"size": 5}).Refused(t, 400, "invalid_request"), doc{"field": "parts"})
}

func TestASealRefusesPartsThatAreNotThoseThatWereUploaded(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence, content := w.grant(t, "july", "a7"), threeParts()
	path := objectPath("july", fence, "o")
	reserved := w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Want(t, 201)
	first := toldOf(t, reserved).Upload.Parts[0]
	if status, _ := sendPart(t, first.Method, first.URL, first.Headers, "short"); status < 400 {
		t.Errorf("a part of another length: %d", status)
	}
	three := doc{"number": 3, "etag": `"5d41402abc4b2a76b9719d911017c592"`}
	w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": []doc{{"number": 1, "etag": "x"}, {"number": 2, "etag": "x"}, three}}).
		Refused(t, 409, "object_incomplete") // none was uploaded
	parts := uploadParts(t, reserved, content)

	for name, wrong := range map[string][]doc{
		"one is missing":     parts[:2],
		"one too many":       append(slices.Clone(parts), doc{"number": 4, "etag": "x"}),
		"another etag":       {parts[1], parts[2], three},
		"one without a part": {parts[0], parts[1], {"number": 4, "etag": "x"}},
	} {
		t.Log(name)
		w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": wrong}).Refused(t, 409, "object_incomplete")
	}
	for name, impossible := range map[string]any{
		"none":       []doc{},
		"twice":      append(slices.Clone(parts), parts[0]),
		"number":     []doc{{"number": 0, "etag": "x"}},
		"past 10000": []doc{{"number": 10_001, "etag": "x"}},
		"no etag":    []doc{{"number": 1}},
		"too many":   slices.Repeat(parts[:1], 10_001),
	} {
		t.Log(name)
		equal(t, w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": impossible}).Refused(t, 400, "invalid_request"), doc{"field": "parts"})
	}
	equal(t, w.DoAs(t, w.Worker, "POST", path+"/seal", nil).Refused(t, 400, "invalid_request"), doc{"field": "parts"})
	w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "o"}).Refused(t, 409, "object_incomplete")
	w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": strings.Repeat("x", 2<<20)}).Refused(t, 413, "body_too_large")
	w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Want(t, 200) // and nothing is spoilt

	w.stage(t, "july", fence, "whole", "hello", nil)
	equal(t, w.DoAs(t, w.Worker, "POST", objectPath("july", fence, "whole")+"/seal", doc{"parts": parts}).
		Refused(t, 400, "invalid_request"), doc{"field": "parts"})
}

func TestASealOfPartsRefusesWhatIsNotTheDeclaredBytes(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence, content := w.grant(t, "july", "a7"), threeParts()
	declared := multipart(content)
	declared["sha256"] = hexDigest("another")
	path := objectPath("july", fence, "digest")
	parts := uploadParts(t, w.DoAs(t, w.Worker, "PUT", path, declared).Want(t, 201), content)
	for range 2 {
		got := w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Refused(t, 422, "object_mismatch")
		equal(t, got, doc{"actual": doc{"size": len(content), "sha256": hexDigest(content)}})
	}

	path = objectPath("july", fence, "size")
	reserved := w.DoAs(t, w.Worker, "PUT", path, multipart(content)).Want(t, 201)
	parts = uploadParts(t, reserved, content)
	w.Storage.Put(t, reserved.String(t, "key"), "another") // by credentials of the worker's own
	got := w.DoAs(t, w.Worker, "POST", path+"/seal", doc{"parts": parts}).Refused(t, 422, "object_mismatch")
	equal(t, got, doc{"expected": doc{"size": len(content)}, "actual": doc{"size": 7}})
	if left := w.Storage.Get(t, reserved.String(t, "key")); left != "another" {
		t.Errorf("the bytes of the key were written twice: %d bytes", len(left))
	}
}
