package contract

import (
	"fmt"
	"strings"
)

func wordCases() []Case {
	const table = "Words"
	return []Case{
		{Table: table, Row: "report", Steps: wordReport},
		{Table: table, Row: "lease", Steps: wordLease},
		{Table: table, Row: "fence", Steps: wordFence},
		{Table: table, Row: "object", Steps: wordObject},
		{Table: table, Row: "publication", Steps: wordPublication},
		{Table: table, Row: "visible", Steps: wordVisible},
	}
}

func wordReport(w *Walk) {
	longest := w.report + "." + strings.Repeat("r", 199-len(w.report))
	for _, id := range []string{w.report, w.report + ".2026.july", w.report + "_A-1", longest} {
		w.Want(w.Worker("GET", w.below(id, "lease"), nil), 404)
		w.Want(w.Worker("PUT", w.below(id, "leases/a7"), longLease()), 201)
	}
	for _, id := range []string{"-july", ".july", "ju%20ly", "%C3%BC", longest + "r"} {
		w.Want(w.Worker("PUT", w.below(id, "leases/a7"), longLease()), 400)
	}
	created := w.below(w.report+".set", "settings")
	w.Want(w.Operator("GET", created, nil), 404)
	w.Want(w.Operator("PATCH", created, body{}), 200)
	w.Want(w.Operator("GET", created, nil), 200)
}

func wordLease(w *Walk) {
	for i, id := range []string{"6e3b2f0e-8a41-4c8e-9f4b-0d8a1d6b2c11", "a7", "A.b_c-9", strings.Repeat("a", 64)} {
		fence := w.grant(id)
		w.Check(strings.HasSuffix(fence, fmt.Sprintf(".%d", i+1)), "the fence of grant %d is %s", i+1, fence)
		w.release(id)
		w.Want(w.Worker("PUT", "leases/"+id, longLease()), 410)
	}
	for _, id := range []string{"-a", ".a", "a%20b", strings.Repeat("a", 65)} {
		w.Want(w.Worker("PUT", "leases/"+id, longLease()), 400)
	}
}

func wordFence(w *Walk) {
	first := w.grant("a7")
	second := w.overtake("a7", "b9")
	epoch, counter, _ := strings.Cut(second, ".")
	w.Check(first == epoch+".1" && counter == "2", "the first two fences are %q and %q", first, second)
	for _, bad := range []string{"1", "01.1", "1.01", "0.1", "1.0", "2147483648.1", "1.9223372036854775808"} {
		got := w.publish("k1", body{"fence": bad, "withdraw": true})
		w.Check(got.Text("code") == "invalid_fence", "%q: %s", bad, got)
	}
	got := w.publish("k1", body{"fence": 1.2, "withdraw": true})
	w.Check(got.Status == 400, "a fence that is a number: %s", got)
	for _, high := range []string{"2147483647.1", epoch + ".9223372036854775807", epoch + ".10"} { // as numbers, not as text
		got := w.publish("k1", body{"fence": high, "withdraw": true})
		w.Check(got.Text("code") == "fence_not_granted", "%q: %s", high, got)
	}
}

func wordObject(w *Walk) {
	fence := w.grant("a7")
	for _, id := range []string{"july.csv", "A_b-9", strings.Repeat("o", 128)} {
		key, want := w.Want(w.reserve(fence, id, nil), 201).Text("key"), "reports/"+w.report+"/"+fence+"/"+id
		w.Check(key == want, "the key is %s, not %s", key, want)
	}
	for _, id := range []string{"-o", ".hidden", "a%20b", strings.Repeat("o", 129)} {
		w.Want(w.reserve(fence, id, nil), 400)
	}
	reserved := w.Want(w.reserve(fence, "once", nil), 201)
	w.Check(w.upload(reserved, "a") == 200, "the first upload fails")
	w.Check(w.upload(reserved, "b") == 412, "the bytes of a key can be written twice")
	next := w.overtake("a7", "b9")
	w.Check(w.Want(w.reserve(next, "once", nil), 201).Text("key") != reserved.Text("key"), "two grants share a key")
}

func wordPublication(w *Walk) {
	fence := w.grant("a7")
	for n := range 3 {
		got := w.Want(w.publish(fmt.Sprintf("k%d", n), body{"fence": fence, "withdraw": true, "expected_version": n}), 201)
		w.Check(got.Int("version") == int64(n+1), "publication %d is version %d", n+1, got.Int("version"))
		w.Want(w.publish("refused", body{"fence": fence, "withdraw": true}), 428) // takes no version
	}
}

func wordVisible(w *Walk) {
	fence := w.superseded()
	w.Check(string(w.Reader("GET", "content", nil).Body) == "second", "the newest publication is not what is visible")
	w.Want(w.publish("k3", body{"fence": fence, "withdraw": true, "expected_version": 2}), 201)
	w.Want(w.Reader("GET", "content", nil), 410)
}
