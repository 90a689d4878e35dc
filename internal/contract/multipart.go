package contract

import (
	"encoding/json"
	"strings"
)

const partSize = 5 << 20

// twoParts are the bytes of a whole part and a short one.
func twoParts() string { return strings.Repeat("a", partSize) + "hello" }

// inParts declares content as one that is uploaded in parts.
func inParts(content string) body {
	return body{"size": len(content), "multipart": body{"part_size": partSize}}
}

// partURL is the right to upload one part, as an answer tells it.
type partURL struct {
	Number int
	signed
}

func (w *Walk) partURLs(reserved Answer) []partURL {
	var told struct{ Upload struct{ Parts []partURL } }
	if err := json.Unmarshal(reserved.Body, &told); err != nil {
		w.Stop("the reservation cannot be read: %v", err)
	}
	return told.Upload.Parts
}

// uploadParts uploads all parts of content, and returns them as a seal names them.
func (w *Walk) uploadParts(reserved Answer, content string) (parts []body) {
	for _, p := range w.partURLs(reserved) {
		from := (p.Number - 1) * partSize
		status, etag := w.put(p.signed, content[from:min(from+partSize, len(content))])
		if status != 200 {
			w.Stop("upload of part %d: %d", p.Number, status)
		}
		parts = append(parts, body{"number": p.Number, "etag": etag})
	}
	return parts
}

// stageParts reserves an object in parts and uploads them.
func (w *Walk) stageParts(fence, id string, declared body, content string) (parts []body) {
	return w.uploadParts(w.Want(w.reserve(fence, id, declared), 201), content)
}

func (w *Walk) sealParts(fence, id string, parts any) Answer {
	return w.Worker("POST", object(fence, id)+"/seal", body{"parts": parts})
}

func reservePartsCases() []Case {
	const table = "Reserve in parts"
	return []Case{
		{Table: table, Row: `201 {"object_id"`, Steps: reserveParts},
		{Table: table, Row: `200 {"state":"reserved"`, Steps: reservePartsAgain},
		{Table: table, Row: `200 {"upload"}`, Steps: reservePartsInPages},
		{Table: table, Row: "422 object_id_reused", Steps: reservePartsOther},
		{Table: table, Row: `400 invalid_request {"field":"multipart.part_size"}`, Steps: reservePartsOfNoSize},
		{Table: table, Row: `400 invalid_request {"field":"size"}`, Steps: reservePartsOfNothing},
		{Table: table, Row: `400 invalid_request {"field":"parts"}`, Steps: reserveNoSuchParts},
		{Table: table, Row: "503 unavailable", Alone: true, Steps: reservePartsWithoutStorage},
	}
}

func reserveParts(w *Walk) {
	fence := w.grant("a7")
	got := w.See(w.reserve(fence, "o1", inParts(twoParts())))
	parts := w.partURLs(got)
	w.Check(len(parts) == 2, "%d parts, not 2", len(parts))
	if status, _ := w.put(parts[1].signed, "hell"); status < 400 {
		w.Fail("a part of another length can be uploaded: %d", status)
	}
	w.Want(w.sealParts(fence, "o1", w.uploadParts(got, twoParts())), 200)
}

func reservePartsAgain(w *Walk) {
	fence := w.grant("a7")
	first := w.uploadParts(w.Want(w.reserve(fence, "o1", inParts(twoParts())), 201), twoParts())
	again := w.uploadParts(w.See(w.reserve(fence, "o1", inParts(twoParts()))), twoParts())
	w.Want(w.sealParts(fence, "o1", []body{first[0], again[1]}), 200)
}

func reservePartsInPages(w *Walk) {
	fence := w.grant("a7")
	declared := body{"size": 1500 * partSize, "multipart": body{"part_size": partSize}}
	first := w.partURLs(w.Want(w.reserve(fence, "o1", declared), 201))
	second := w.partURLs(w.See(w.Worker("PUT", object(fence, "o1")+"?parts=1001-2000", declared)))
	w.Check(len(first) == 1000 && first[0].Number == 1, "the first page has %d parts", len(first))
	w.Check(len(second) == 500 && second[0].Number == 1001, "the second page has %d parts", len(second))
	w.Want(w.Worker("DELETE", object(fence, "o1"), nil), 200)
}

func reservePartsOther(w *Walk) {
	fence := w.grant("a7")
	w.Want(w.reserve(fence, "o1", inParts("hello")), 201)
	w.See(w.reserve(fence, "o1", body{"size": 5, "multipart": body{"part_size": partSize + 1}}))
	w.See(w.reserve(fence, "o1", body{"size": 5}))
}

func reservePartsOfNoSize(w *Walk) {
	fence := w.grant("a7")
	for _, n := range []int64{0, partSize - 1, 5<<30 + 1} {
		w.See(w.reserve(fence, "o1", body{"size": 5, "multipart": body{"part_size": n}}))
	}
	w.See(w.reserve(fence, "o1", body{"size": 10_000*partSize + 1, "multipart": body{"part_size": partSize}}))
}

func reservePartsOfNothing(w *Walk) {
	fence := w.grant("a7")
	w.See(w.reserve(fence, "o1", body{"multipart": body{"part_size": partSize}}))
	w.See(w.reserve(fence, "o1", body{"size": 0, "multipart": body{"part_size": partSize}}))
	w.See(w.reserve(fence, "o1", body{"size": int64(5)<<40 + 1, "multipart": body{"part_size": 5 << 30}}))
}

func reserveNoSuchParts(w *Walk) {
	fence := w.grant("a7")
	for _, query := range []string{"1", "2-1", "1-1001", "2-2"} {
		w.See(w.Worker("PUT", object(fence, "o1")+"?parts="+query, inParts("hello")))
	}
	w.See(w.Worker("PUT", object(fence, "o1")+"?parts=1-1", body{"size": 5}))
}

func reservePartsWithoutStorage(w *Walk) {
	fence := w.grant("a7")
	w.whileStorageIsAway(func() { w.See(w.reserve(fence, "o1", inParts("hello"))) })
	again := w.Want(w.reserve(fence, "o1", inParts("hello")), 200)
	w.Want(w.sealParts(fence, "o1", w.uploadParts(again, "hello")), 200)
}

func sealPartsCases() []Case {
	const table = "Seal of parts"
	return []Case{
		{Table: table, Row: `200 {"state":"sealed","size"`, Steps: sealTwoParts},
		{Table: table, Row: `200 {"state":"sealed"} | without`, Steps: sealCompleted},
		{Table: table, Row: "409 object_incomplete | a part", Steps: sealOtherParts},
		{Table: table, Row: "409 object_incomplete | a publish", Steps: publishUnfinished},
		{Table: table, Row: `400 invalid_request {"field":"parts"} | no parts`, Steps: sealNoParts},
		{Table: table, Row: `400 invalid_request {"field":"parts"} | a part`, Steps: sealImpossibleParts},
		{Table: table, Row: `400 invalid_request {"field":"parts"} | parts of`, Steps: sealPartsOfWhole},
		{Table: table, Row: "422 object_mismatch", Steps: sealPartsOfOther},
	}
}

func sealTwoParts(w *Walk) {
	fence := w.grant("a7")
	parts := w.stageParts(fence, "o1", inParts(twoParts()), twoParts())
	for range 2 {
		got := w.See(w.sealParts(fence, "o1", []body{parts[1], parts[0]}))
		w.Check(got.Text("sha256") == digest(twoParts()) && got.Int("size") == int64(len(twoParts())), "%s", got.Body)
	}
	w.Want(w.publish("k1", body{"fence": fence, "object_id": "o1"}), 201)
	read := w.Want(w.Reader("GET", "content", nil), 200)
	w.Check(string(read.Body) == twoParts(), "%d other bytes are read", len(read.Body))
}

// sealCompleted finds the bytes there already: those of an earlier seal, and those of a completion that nobody heard
// of, which leaves no more behind.
func sealCompleted(w *Walk) {
	fence := w.grant("a7")
	w.Want(w.sealParts(fence, "o1", w.stageParts(fence, "o1", inParts("hello"), "hello")), 200)
	w.See(w.seal(fence, "o1"))

	w.Want(w.reserve(fence, "o2", inParts("hello")), 201)
	w.Must(w.Faults.Overwrite("reports/"+w.report+"/"+fence+"/o2", "hello"))
	w.Want(w.publish("k1", body{"fence": fence, "object_id": "o2"}), 201)
	w.See(w.seal(fence, "o2"))
}

func sealOtherParts(w *Walk) {
	fence := w.grant("a7")
	parts := w.stageParts(fence, "o1", inParts(twoParts()), twoParts())
	other := body{"number": 2, "etag": `"` + strings.Repeat("0", 32) + `"`}
	w.See(w.sealParts(fence, "o1", parts[:1]))
	w.See(w.sealParts(fence, "o1", []body{parts[0], other}))
	w.Want(w.sealParts(fence, "o1", parts), 200)
}

func publishUnfinished(w *Walk) {
	fence := w.grant("a7")
	w.stageParts(fence, "o1", inParts("hello"), "hello")
	w.See(w.publish("k1", body{"fence": fence, "object_id": "o1"}))
}

func sealNoParts(w *Walk) {
	fence := w.grant("a7")
	w.stageParts(fence, "o1", inParts("hello"), "hello")
	w.See(w.seal(fence, "o1"))
	w.See(w.sealParts(fence, "o1", []body{}))
}

func sealImpossibleParts(w *Walk) {
	fence := w.grant("a7")
	parts := w.stageParts(fence, "o1", inParts("hello"), "hello")
	for _, impossible := range [][]body{{{"number": 1}}, {{"number": 0, "etag": "x"}}, {{"number": 10_001, "etag": "x"}}, {parts[0], parts[0]}} {
		w.See(w.sealParts(fence, "o1", impossible))
	}
}

func sealPartsOfWhole(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.See(w.sealParts(fence, "o1", []body{{"number": 1, "etag": "x"}}))
}

func sealPartsOfOther(w *Walk) {
	fence := w.grant("a7")
	declared := inParts("hello")
	declared["sha256"] = digest("HELLO")
	w.See(w.sealParts(fence, "o1", w.stageParts(fence, "o1", declared, "hello")))
}
