package contract

// beyondTheBrake is a size that no share of all other objects' bytes lets through.
const beyondTheBrake = 4_000_000_000

// heldBack has the collector's brake hold the object o1 back, and returns the run and the object's fence.
func (w *Walk) heldBack() (run, fence string) {
	fence = w.grant("a7")
	w.Want(w.reserve(fence, "o0", nil), 201) // which is due first, and goes whatever its share
	w.Want(w.reserve(fence, "o1", body{"size": beyondTheBrake}), 201)
	w.release("a7")
	w.Await("the object is due", func() bool {
		because, _ := w.Worker("GET", object(fence, "o1"), nil).Raw("kept_because")
		return because == "null"
	})
	return w.collect(false), fence
}

func runApproved(w *Walk) {
	run, fence := w.heldBack()
	got := w.See(w.Operator("POST", run+"/approve", nil))
	w.Check(got.Int("objects") == 1 && got.Int("bytes") == beyondTheBrake, "%s", got.Body)
	w.collect(false)
	state := w.Worker("GET", object(fence, "o1"), nil).Text("state")
	w.Check(state == "condemned" || state == "deleted", "the object is %s", state)
}

func runApprovedTwice(w *Walk) {
	run, _ := w.heldBack()
	first := w.Want(w.Operator("POST", run+"/approve", nil), 200)
	w.collect(false)
	again := w.See(w.Operator("POST", run+"/approve", body{}))
	w.Check(again.Int("objects") == first.Int("objects") && again.Int("bytes") == first.Int("bytes"), "%s, not %s", again.Body, first.Body)
}

func runHoldsNothing(w *Walk) {
	w.See(w.Operator("POST", w.collect(true)+"/approve", nil))
}

func runObjectsOfNoAction(w *Walk) {
	w.See(w.Operator("GET", runs+"/1/objects?action=thrown", nil))
}

func objectHeldBack(w *Walk) {
	run, fence := w.heldBack()
	got := w.See(w.Worker("GET", object(fence, "o1"), nil))
	held, _ := got.Raw("held_back")
	w.Check(runs+"/"+Answer{Body: []byte(held)}.raw("run_id") == run, "held_back %s, of %s", held, run)
	w.Want(w.Operator("POST", run+"/approve", nil), 200)
	w.collect(false)
}

// raw is the text of a member; empty if there is none.
func (a Answer) raw(name string) string {
	text, _ := a.Raw(name)
	return text
}
