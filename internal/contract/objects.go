package contract

import "strings"

func reserveCases() []Case {
	const table = "Reserve"
	return []Case{
		{Table: table, Row: `201 {"object_id"`, Steps: reserveGives},
		{Table: table, Row: `200 {"state":"reserved"`, Steps: reserveAgain},
		{Table: table, Row: "422 object_id_reused", Steps: reserveOther},
		{Table: table, Row: "409 object_exists", Steps: reserveSealed},
		{Table: table, Row: "400 invalid_fence", Steps: reserveBadFence},
		{Table: table, Row: "409 stale_fence", Steps: reserveStale},
		{Table: table, Row: "409 fence_not_granted", Steps: reserveMadeUp},
		{Table: table, Row: "409 lease_not_live", Steps: reserveNotLive},
		{Table: table, Row: "400 invalid_request", Steps: reserveBadForm},
	}
}

func reserveGives(w *Walk) {
	fence := w.grant("a7")
	w.See(w.reserve(fence, "bare", nil))
	declared := body{"content_type": "text/csv", "filename": "july.csv", "size": 5, "sha256": digest("hello")}
	got := w.See(w.reserve(fence, "july.csv", declared))
	for _, wrong := range []string{"hell", "HELLO"} { // another length, another digest
		w.Check(w.upload(got, wrong) >= 400, "%q can be uploaded, which is not what was declared", wrong)
	}
	w.Check(w.upload(got, "hello") == 200, "what was declared cannot be uploaded")
	w.Check(w.upload(got, "hello") == 412, "the bytes of a key can be written twice")
}

func reserveAgain(w *Walk) {
	fence := w.grant("a7")
	declared := body{"size": 5}
	w.Want(w.reserve(fence, "o1", declared), 201)
	w.Check(w.upload(w.See(w.reserve(fence, "o1", declared)), "hello") == 200, "the fresh URL does not work")
}

func reserveOther(w *Walk) {
	fence := w.grant("a7")
	w.Want(w.reserve(fence, "o1", body{"size": 5}), 201)
	w.See(w.reserve(fence, "o1", body{"size": 6}))
	w.See(w.reserve(fence, "o1", nil))
}

func reserveSealed(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.Want(w.Worker("POST", object(fence, "o1")+"/seal", nil), 200)
	w.See(w.reserve(fence, "o1", body{"content_type": "text/csv"}))
	w.Want(w.Worker("DELETE", object(fence, "o1"), nil), 200)
	w.See(w.reserve(fence, "o1", body{"content_type": "text/csv"}))
}

func reserveBadFence(w *Walk) {
	w.grant("a7")
	for _, fence := range []string{"1", "01.1", "0.1", "1.0", "1.1.1", "1,1"} {
		w.See(w.reserve(fence, "o1", nil))
	}
}

func reserveStale(w *Walk) {
	first := w.grant("a7")
	second := w.overtake("a7", "b9")
	got := w.See(w.reserve(first, "o1", nil))
	w.Check(got.Text("presented") == first && got.Text("highest") == second && got.Text("reason") == "superseded", "%s", got.Body)
	w.Want(w.revoke(""), 200)
	got = w.See(w.reserve(second, "o1", nil))
	w.Check(got.Text("reason") == "revoked", "the reason is %q", got.Text("reason"))
}

func reserveMadeUp(w *Walk) {
	fence := w.grant("a7")
	got := w.See(w.reserve(fence+"0", "o1", nil))
	w.Check(got.Text("granted") == fence && got.Text("presented") == fence+"0", "%s", got.Body)
}

func reserveNotLive(w *Walk) {
	fence := w.brief("a7")
	w.Want(w.reserve(fence, "o1", nil), 201)
	w.set(body{"fencing": "live"})
	w.See(w.reserve(fence, "o2", nil))
}

func reserveBadForm(w *Walk) {
	fence := w.grant("a7")
	for field, declared := range map[string]body{
		"size": {"size": -1}, "sha256": {"sha256": "xyz"}, "content_type": {"content_type": "csv"},
		"filename": {"filename": "a/b"},
	} {
		got := w.See(w.reserve(fence, "o1", declared))
		w.Check(got.Text("field") == field, "the field is %q, not %q", got.Text("field"), field)
	}
	w.See(w.reserve(fence, "-o", nil))
}

func sealCases() []Case {
	const table = "Seal"
	return []Case{
		{Table: table, Row: `200 {"state":"sealed","size"`, Steps: sealBytes},
		{Table: table, Row: `200 {"state":"sealed"} | also`, Steps: sealStale},
		{Table: table, Row: "404 object_not_found", Steps: sealUnknown},
		{Table: table, Row: "409 object_incomplete", Steps: sealNothing},
		{Table: table, Row: "422 object_mismatch", Steps: sealOther},
		{Table: table, Row: "410 object_gone", Steps: sealGone},
		{Table: table, Row: "503 unavailable", Alone: true, Steps: sealWithoutStorage},
	}
}

func (w *Walk) seal(fence, id string) Answer { return w.Worker("POST", object(fence, id)+"/seal", nil) }

func sealBytes(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	for range 2 {
		got := w.See(w.seal(fence, "o1"))
		w.Check(got.Int("size") == 5 && got.Text("sha256") == digest("hello"), "%s", got.Body)
	}
}

func sealStale(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.overtake("a7", "b9")
	w.See(w.seal(fence, "o1"))
}

func sealUnknown(w *Walk) { w.See(w.seal(w.grant("a7"), "o1")) }

func sealNothing(w *Walk) {
	fence := w.grant("a7")
	w.Want(w.reserve(fence, "o1", nil), 201)
	w.See(w.seal(fence, "o1"))
}

// mismatched is an object whose bytes are not the declared ones: they came by the worker's own credentials, past the
// URL, which would not have let them through.
func (w *Walk) mismatched(fence, id string) {
	reserved := w.Want(w.reserve(fence, id, body{"size": 5, "sha256": digest("hello")}), 201)
	w.Must(w.Faults.Overwrite(reserved.Text("key"), "another"))
}

func sealOther(w *Walk) {
	fence := w.grant("a7")
	w.mismatched(fence, "o1")
	got := w.See(w.seal(fence, "o1"))
	actual, _ := got.Raw("actual")
	w.Check(strings.Contains(actual, "7"), "the actual bytes are %s", actual)
}

func sealGone(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.Want(w.Worker("DELETE", object(fence, "o1"), nil), 200)
	w.See(w.seal(fence, "o1"))
}

func sealWithoutStorage(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.whileStorageIsAway(func() { w.See(w.seal(fence, "o1")) })
	w.Want(w.seal(fence, "o1"), 200)
}

// whileStorageIsAway does something between the storage's stop and its return.
func (w *Walk) whileStorageIsAway(do func()) {
	start, err := w.Faults.StopStorage()
	w.Must(err)
	defer func() { w.Must(start()) }()
	do()
}

func objectCases() []Case {
	const table = "Looking at objects"
	return []Case{
		{Table: table, Row: `200 {"state","key"`, Steps: lookAtObject},
		{Table: table, Row: `200 {"state","multipart"`, Steps: lookAtParts},
		{Table: table, Row: `200 {"state","kept_because":"held_back"`, Alone: true, Steps: objectHeldBack},
		{Table: table, Row: `200 {"state":"condemned"`, Steps: lookAtCondemned},
		{Table: table, Row: `200 {"state":"deleted"}`, Alone: true, Steps: lookAtDeleted},
		{Table: table, Row: `200 {"items"}`, Steps: lookAtObjects},
		{Table: table, Row: "404 object_not_found", Steps: lookAtNoObject},
		{Table: table, Row: "400 invalid_request", Steps: lookAtNoState},
	}
}

func lookAtObject(w *Walk) {
	fence := w.superseded()
	w.Want(w.reserve(fence, "o3", nil), 201)
	for id, want := range map[string]string{"o2": "visible", "o1": "within_retention", "o3": "within_retention"} {
		got := w.See(w.Worker("GET", object(fence, id), nil))
		_, kept := got.Raw("kept_because")
		w.Check(kept && got.Text("kept_because") == want, "%s is kept because %q, not %q", id, got.Text("kept_because"), want)
		eligible, _ := got.Raw("eligible_at")
		w.Check((eligible == "null") == (id == "o2"), "%s: eligible_at %s", id, eligible)
	}
}

func lookAtParts(w *Walk) {
	fence := w.grant("a7")
	w.Want(w.reserve(fence, "o1", inParts("hello")), 201)
	got := w.See(w.Worker("GET", object(fence, "o1"), nil))
	multipart, _ := got.Raw("multipart")
	w.Check(multipart == `{"part_size":5242880}`, "multipart is %s", multipart)
}

func lookAtCondemned(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.Want(w.Worker("DELETE", object(fence, "o1"), nil), 200)
	got := w.See(w.Worker("GET", object(fence, "o1"), nil))
	w.Check(got.Text("condemned_because") == "discarded", "condemned_because %q", got.Text("condemned_because"))
}

func lookAtDeleted(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.Want(w.Worker("DELETE", object(fence, "o1"), nil), 200)
	w.Await("the collector has deleted the object", func() bool {
		w.collect(false)
		return w.Worker("GET", object(fence, "o1"), nil).Text("state") == "deleted"
	})
	w.See(w.Worker("GET", object(fence, "o1"), nil))
}

func lookAtObjects(w *Walk) {
	fence := w.published("hello")
	w.Want(w.reserve(fence, "o2", nil), 201)
	for query, want := range map[string]int{"": 2, "?state=sealed": 1, "?state=reserved": 1, "?state=deleted": 0, "?object_id=o2": 1, "?object_id=o3": 0} {
		got := w.See(w.Worker("GET", "objects"+query, nil))
		w.Check(len(got.Items()) == want, "objects%s: %d, not %d", query, len(got.Items()), want)
	}
}

func lookAtNoObject(w *Walk) { w.See(w.Worker("GET", object(w.grant("a7"), "o1"), nil)) }

func lookAtNoState(w *Walk) {
	w.grant("a7")
	w.See(w.Worker("GET", "objects?state=visible", nil))
}

func discardCases() []Case {
	const table = "Discard"
	return []Case{
		{Table: table, Row: `200 {"state":"condemned"} | it was`, Steps: discardOwn},
		{Table: table, Row: `200 {"state":"condemned"} | its grant`, Steps: discardStale},
		{Table: table, Row: "409 object_in_use", Steps: discardPublished},
		{Table: table, Row: "404 object_not_found", Steps: discardUnknown},
	}
}

func discardOwn(w *Walk) {
	fence := w.grant("a7")
	w.Want(w.reserve(fence, "o1", nil), 201)
	for range 2 {
		w.See(w.Worker("DELETE", object(fence, "o1"), nil))
	}
}

func discardStale(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.overtake("a7", "b9")
	w.See(w.Worker("DELETE", object(fence, "o1"), nil))
}

func discardPublished(w *Walk) {
	fence := w.superseded()
	w.See(w.Worker("DELETE", object(fence, "o1"), nil))
	w.See(w.Worker("DELETE", object(fence, "o2"), nil))
}

func discardUnknown(w *Walk) { w.See(w.Worker("DELETE", object(w.grant("a7"), "o1"), nil)) }
