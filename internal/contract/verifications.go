package contract

import (
	"slices"
	"strconv"
)

func verificationCases() []Case {
	const table = "Verifying"
	return []Case{
		{Table: table, Row: `202 {"verification_id"}`, Alone: true, Steps: verificationStarted},
		{Table: table, Row: "409 already_running", Alone: true, Steps: verificationUnderWay},
		{Table: table, Row: `200 {"verification_id","outcome"`, Alone: true, Steps: verificationShown},
		{Table: table, Row: `200 {"items"} | GET /v1/verifications,`, Alone: true, Steps: verificationsListed},
		{Table: table, Row: `200 {"items"} | GET /v1/verifications/{id}/findings`, Alone: true, Steps: verificationFindings},
		{Table: table, Row: "404 verification_not_found", Steps: verificationUnknown},
	}
}

const verifications = "/v1/verifications"

// verify has everything verified, to the end, and returns the address of the verification.
func (w *Walk) verify(deep bool) (verification string) {
	return w.verified(w.Want(w.Operator("POST", verifications, body{"deep": deep}), 202))
}

// verified returns the address of a verification that was started, once it has ended.
func (w *Walk) verified(started Answer) (verification string) {
	verification = verifications + "/" + strconv.FormatInt(started.Int("verification_id"), 10)
	w.Await("the verification has ended", func() bool {
		return w.Want(w.Operator("GET", verification, nil), 200).Text("finished_at") != ""
	})
	return verification
}

func verificationStarted(w *Walk) {
	for _, asked := range []any{nil, body{}, body{"deep": false}, body{"deep": true}} {
		w.verified(w.See(w.Operator("POST", verifications, asked)))
	}
}

func verificationUnderWay(w *Walk) {
	var started Answer
	w.whileStorageIsAway(func() { // which it waits for, for a while
		started = w.Want(w.Operator("POST", verifications, nil), 202)
		again := w.See(w.Operator("POST", verifications, nil))
		w.Check(again.Int("verification_id") == started.Int("verification_id"), "verification %d, not %d", again.Int("verification_id"), started.Int("verification_id"))
	})
	w.verified(started)
	w.verify(false) // goes on with it, where it has stopped
}

func verificationShown(w *Walk) {
	w.published("hello")
	got := w.See(w.Operator("GET", w.verify(false), nil))
	counts, _ := got.Raw("verified")
	w.Check(got.Text("outcome") == "completed", "%s", got.Body)
	w.Check(Answer{Body: []byte(counts)}.Int("objects") >= 1, "verified %s", counts)
}

func verificationsListed(w *Walk) {
	w.verify(false)
	last := w.verify(true)
	items := w.See(w.Operator("GET", verifications, nil)).Items()
	w.Check(len(items) >= 2 && verifications+"/"+strconv.FormatInt(items[0].Int("verification_id"), 10) == last, "the newest is not first")
}

func verificationFindings(w *Walk) {
	key := "reports/" + w.report + "/" + w.published("hello") + "/o1"
	w.Must(w.Faults.Overwrite(key, "other"))
	items := w.See(w.Operator("GET", w.verify(false)+"/findings?limit=1000", nil)).Items()
	found := slices.ContainsFunc(items, func(item Answer) bool {
		return item.Text("report") == w.report && item.Text("fault") == "changed" && item.Text("key") == key
	})
	w.Check(found, "nothing is found of %s", w.report)
}

func verificationUnknown(w *Walk) {
	for _, id := range []string{"/0", "/x", "/9000000000", "/9000000000/findings"} {
		w.See(w.Operator("GET", verifications+id, nil))
	}
}
