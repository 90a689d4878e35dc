package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pages reads a whole list, limit rows at a time.
func (w *world) pages(t *testing.T, key, path string, limit int) []doc {
	t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	first := fmt.Sprintf("%s%slimit=%d", path, separator, limit)
	var all []doc
	for next, n := first, 0; next != ""; n++ {
		if n > 100 {
			t.Fatalf("%s does not end", path)
		}
		page := w.DoAs(t, key, "GET", next, nil).Want(t, 200).JSON(t)
		items, _ := page["items"].([]any)
		cursor, more := page["next"].(string)
		if len(items) > limit || more && len(items) < limit {
			t.Errorf("%s: %d items, next %q", next, len(items), cursor)
		}
		for _, item := range items {
			all = append(all, item.(doc))
		}
		if next = ""; more {
			next = first + "&after=" + url.QueryEscape(cursor)
		}
	}
	return all
}

// lists makes a world in which every list has rows that tie in time, and names the lists, each with how many
// rows it has and the members by which a row is known.
func lists(t *testing.T) (w *world, rows map[string]int, known map[string][]string) {
	t.Helper()
	w = begin(t)
	w.DB.Exec(t, `
		CREATE OR REPLACE FUNCTION fenceline_now() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS $$SELECT '2026-11-29T12:00:00.123456Z'::timestamptz + (SELECT ahead FROM public.test_clock)$$`)
	for _, report := range []string{"a", "a.b", "a_b", "b"} {
		fence := w.grant(t, report, "l3")
		for _, lease := range []string{"l1", "l4", "l2"} {
			w.DoAs(t, w.Worker, "DELETE", "/v1/reports/"+report+"/leases/"+lease, nil).Want(t, 200)
		}
		for _, object := range []string{"o2", "o1", "o.3"} {
			w.DoAs(t, w.Worker, "PUT", objectPath(report, fence, object), nil).Want(t, 201)
		}
		for version := range 3 {
			w.publish(t, report, fmt.Sprint("k", version), doc{"fence": fence, "withdraw": true, "expected_version": version}).Want(t, 201)
		}
	}
	w.DB.Exec(t, "UPDATE test_clock SET ahead = '25 h'")
	second := w.grant(t, "a", "m1")
	w.DoAs(t, w.Worker, "PUT", objectPath("a", second, "o1"), nil).Want(t, 201)
	for _, refused := range []string{"1.1", "1.8", "1.9"} {
		w.withdraw(t, "a", refused, "refused").Want(t, 409)
	}
	for range 3 {
		w.collect(t, true)
	}
	rows = map[string]int{
		"/v1/reports": 4, "/v1/reports/a/leases": 5, "/v1/reports/a/objects": 4, "/v1/reports/a/objects?state=reserved": 4,
		"/v1/reports/a/objects?state=sealed": 0, "/v1/reports/a/publications": 3, "/v1/reports/a/refusals": 3, "/v1/gc/runs": 3, "/v1/gc/runs/1/objects": 12,
	}
	known = map[string][]string{
		"/v1/reports": {"report"}, "/v1/reports/a/leases": {"lease_id"}, "/v1/reports/a/objects": {"fence", "object_id"},
		"/v1/reports/a/objects?state=reserved": {"fence", "object_id"}, "/v1/reports/a/publications": {"version"}, "/v1/reports/a/refusals": {"presented"},
		"/v1/gc/runs": {"run_id"}, "/v1/gc/runs/1/objects": {"report", "fence", "object_id"},
	}
	return w, rows, known
}

func TestAListGivesEachRowOnceWhateverTheLimit(t *testing.T) {
	t.Parallel()
	w, rows, known := lists(t)
	orders := map[string]string{}
	for path, want := range rows {
		for _, limit := range []int{1, 2, 3, 1000} {
			var order []string
			met := map[string]bool{}
			for _, row := range w.pages(t, w.Operator, path, limit) {
				var name strings.Builder
				for _, member := range known[path] {
					name.WriteString(fmt.Sprint(row[member]) + " ")
				}
				order, met[name.String()] = append(order, name.String()), true
			}
			if len(order) != want || len(met) != want {
				t.Errorf("%s by %d: %d rows, %d different, want %d: %q", path, limit, len(order), len(met), want, order)
			}
			joined := strings.Join(order, "|")
			if orders[path] == "" {
				orders[path] = joined
			}
			if joined != orders[path] {
				t.Errorf("%s by %d is in another order: %s, was %s", path, limit, joined, orders[path])
			}
		}
	}
	for path, want := range map[string]string{
		"/v1/reports": "a |a.b |a_b |b ", "/v1/reports/a/publications": "3 |2 |1 ", "/v1/gc/runs": "3 |2 |1 ",
		"/v1/reports/a/objects": "1.2 o1 |1.1 o.3 |1.1 o1 |1.1 o2 ",
	} {
		if orders[path] != want {
			t.Errorf("%s: %q, want %q", path, orders[path], want)
		}
	}
	if !strings.HasPrefix(orders["/v1/reports/a/leases"], "m1 |") {
		t.Errorf("leases are listed newest first: %q", orders["/v1/reports/a/leases"])
	}
}

func TestACursorIsOfItsListAlone(t *testing.T) {
	t.Parallel()
	w, rows, _ := lists(t)
	cursors := map[string]string{}
	for path, n := range rows {
		if n > 1 && !strings.Contains(path, "?") {
			cursors[path] = w.Do(t, "GET", path+"?limit=1", nil).Want(t, 200).String(t, "next")
		}
	}
	cursors["/v1/reports/b/publications"] = w.Do(t, "GET", "/v1/reports/b/publications?limit=1", nil).Want(t, 200).String(t, "next")
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for path := range cursors {
		for of, cursor := range cursors {
			got := w.Do(t, "GET", path+"?after="+cursor, nil)
			if of == path {
				got.Want(t, 200)
				continue
			}
			equal(t, got.Refused(t, 400, "invalid_request"), doc{"field": "after"})
		}
		for _, garbage := range []string{
			"x", "%00", "!!!", encoded("{}"), encoded("7"), encoded(`{"list":"` + path + `","place":{"x":1}}`),
			encoded(`{"list":"` + path + `","place":[]}`), encoded("\xff"), cursors[path] + "=", strings.Repeat("A", 2000),
		} {
			equal(t, w.Do(t, "GET", path+"?after="+garbage, nil).Refused(t, 400, "invalid_request"), doc{"field": "after"})
		}
	}
}

func TestAListTakesItsOwnParametersAlone(t *testing.T) {
	t.Parallel()
	w, rows, _ := lists(t)
	for path := range rows {
		separator := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
		for query, field := range map[string]string{
			"limit=0": "limit", "limit=1001": "limit", "limit=-1": "limit", "limit=x": "limit", "limit=1.5": "limit",
			"limit=99999999999999999999": "limit", "limt=1": "limt", "limit=1&limit=2": "limit", "%00=1": "�", "after=%FF": "after",
			"limit=%zz": "query",
		} {
			equal(t, w.Do(t, "GET", path+separator+query, nil).Refused(t, 400, "invalid_request"), doc{"field": field})
		}
	}
	equal(t, w.Do(t, "GET", "/v1/reports/a/objects?state=visible", nil).Refused(t, 400, "invalid_request"), doc{"field": "state"})
	equal(t, w.Do(t, "GET", "/v1/reports/a/leases?state=live", nil).Refused(t, 400, "invalid_request"), doc{"field": "state"})
	for _, path := range []string{"leases", "objects", "publications"} {
		w.Do(t, "GET", "/v1/reports/never/"+path, nil).Refused(t, 404, "report_not_found")
	}
}

func TestAPublicationIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	const key = `a "b" & c=%20`
	w.publish(t, "july", "k1", doc{"fence": fence, "withdraw": true}).Want(t, 201)
	w.publish(t, "july", key, doc{"fence": fence, "withdraw": true, "expected_version": 1}).Want(t, 201)
	find := func(text string) []any {
		t.Helper()
		got := w.get(t, july+"/publications?idempotency_key="+url.QueryEscape(text)).Want(t, 200)
		members(t, got, "items")
		items, _ := got.JSON(t)["items"].([]any)
		return items
	}
	for _, text := range []string{key, `"` + key + `"`} { // quotes around it are not part of it
		if items := find(text); len(items) != 1 || fmt.Sprint(items[0].(doc)["version"]) != "2" {
			t.Errorf("%s: %v", text, items)
		}
	}
	if items := find("k2"); len(items) != 0 {
		t.Errorf("an unknown key: %v", items)
	}
	// An empty key is a client's mistake: all publications would not answer its question.
	for _, bad := range []string{"", `""`, strings.Repeat("k", 256), "ü", "\t"} {
		equal(t, w.get(t, july+"/publications?idempotency_key="+url.QueryEscape(bad)).Refused(t, 400, "invalid_request"),
			doc{"field": "idempotency_key"})
	}
}

// What a worker declares of an object comes back wherever the object is shown.
func TestWhatWasDeclaredIsShownWithTheObjectEverywhere(t *testing.T) {
	t.Parallel()
	w := begin(t)
	const content = "region,total\n"
	sum := sha256.Sum256([]byte(content))
	declared := doc{
		"content_type": "text/csv", "filename": "July.csv", "size": len(content), "sha256": hex.EncodeToString(sum[:]),
	}
	var fence string
	for _, report := range []string{"july", "june"} { // two of each, for a page that is not the last
		fence = w.published(t, report, content, declared)
		w.DoAs(t, w.Worker, "PUT", objectPath(report, fence, "z"), nil).Want(t, 201)
		w.publish(t, report, "again", doc{"fence": fence, "from_version": 1, "expected_version": 1}).Want(t, 201)
	}
	object := objectPath("june", fence, w.get(t, "/v1/reports/june").Want(t, 200).JSON(t)["object"].(doc)["object_id"].(string))
	shown := []doc{
		w.DoAs(t, w.Worker, "GET", object, nil).Want(t, 200).JSON(t),
		w.DoAs(t, w.Worker, "GET", "/v1/reports/june/objects?limit=1", nil).Want(t, 200).JSON(t)["items"].([]any)[0].(doc),
	}
	for _, o := range shown {
		if diff := cmp.Diff(doc{"size": json.Number(fmt.Sprint(len(content))), "sha256": declared["sha256"]}, o["declared"]); diff != "" {
			t.Errorf("declared (-want +got):\n%s", diff)
		}
	}
	for _, path := range []string{"/v1/reports/june", "/v1/reports/june/publications/1"} {
		shown = append(shown, w.get(t, path).Want(t, 200).JSON(t)["object"].(doc))
	}
	for _, path := range []string{"/v1/reports?limit=1", "/v1/reports/june/publications?limit=1"} {
		shown = append(shown, w.get(t, path).Want(t, 200).JSON(t)["items"].([]any)[0].(doc)["object"].(doc))
	}
	for _, o := range shown {
		for name, want := range declared {
			if fmt.Sprint(o[name]) != fmt.Sprint(want) {
				t.Errorf("%s is %v, want %v: %v", name, o[name], want, o)
			}
		}
	}
}
