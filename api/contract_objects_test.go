package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/staging"
)

func hexDigest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func reprDigest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestAReservationHandsOutAnUploadURL(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	path := objectPath("july", fence, "july.csv")
	declared := doc{"content_type": "text/csv", "filename": "july.csv", "size": 5, "sha256": hexDigest("hello")}

	got := w.DoAs(t, w.Worker, "PUT", path, declared).Want(t, 201)
	members(t, got, "object_id", "fence", "key", "state", "upload")
	equal(t, got, doc{"object_id": "july.csv", "fence": "1.1", "key": "reports/july/1.1/july.csv", "state": "reserved"})
	var told struct {
		Upload struct {
			Method, URL string
			Headers     map[string]string
			ExpiresAt   time.Time `json:"expires_at"`
		}
	}
	if err := json.Unmarshal(got.Body, &told); err != nil {
		t.Fatal(err)
	}
	if told.Upload.Method != "PUT" || told.Upload.Headers["If-None-Match"] != "*" || told.Upload.Headers["Content-Type"] != "text/csv" {
		t.Errorf("upload %+v", told.Upload)
	}
	if life := time.Until(told.Upload.ExpiresAt); life < 50*time.Minute || life > time.Hour {
		t.Errorf("the URL lives for %v", life)
	}

	again := w.DoAs(t, w.Worker, "PUT", path, declared).Want(t, 200)
	equal(t, again, doc{"key": "reports/july/1.1/july.csv", "state": "reserved"})
	for name, other := range map[string]doc{
		"type": {"content_type": "text/plain"}, "name": {"filename": "j.csv"}, "size": {"size": 6}, "digest": {"sha256": hexDigest("x")},
	} {
		changed := doc{}
		maps.Copy(changed, declared)
		maps.Copy(changed, other)
		w.DoAs(t, w.Worker, "PUT", path, changed).Refused(t, 422, "object_id_reused")
		_ = name
	}
	if status, answer := upload(t, again, "hello"); status != http.StatusOK {
		t.Fatalf("upload: %d %s", status, answer)
	}
	if status, _ := upload(t, again, "hello"); status != http.StatusPreconditionFailed {
		t.Errorf("a second upload: %d, want 412: the bytes of a key are written once", status)
	}
	w.DoAs(t, w.Worker, "POST", path+"/seal", nil).Want(t, 200)
	w.DoAs(t, w.Worker, "PUT", path, declared).Refused(t, 409, "object_exists")
	w.DoAs(t, w.Worker, "DELETE", path, nil).Want(t, 200)
	w.DoAs(t, w.Worker, "PUT", path, declared).Refused(t, 409, "object_exists")
}

func TestTheUploadURLIsSignedForTheAddressThatWorkersSee(t *testing.T) {
	t.Parallel()
	w := begin(t, func(c *service.Config) { c.Bucket.PublicEndpoint = "https://storage.example.org" })
	fence := w.grant(t, "july", "a7")
	got := w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "o"), nil).Want(t, 201)
	if !strings.Contains(string(got.Body), `"url":"https://storage.example.org/`) {
		t.Errorf("upload: %s", got.Body)
	}
}

func TestAReservationComparesTheFenceAsAPublishDoes(t *testing.T) {
	t.Parallel()
	w := begin(t)
	reserve := func(fence string) string { return objectPath("july", fence, "o") }
	w.DoAs(t, w.Worker, "PUT", reserve("1.1"), nil).Refused(t, 404, "report_not_found")
	first := w.grant(t, "july", "a7")
	equal(t, w.DoAs(t, w.Worker, "PUT", reserve("1.2"), nil).Refused(t, 409, "fence_not_granted"),
		doc{"presented": "1.2", "granted": "1.1"})
	second := w.overtake(t, "july", "b9")
	stale := w.DoAs(t, w.Worker, "PUT", reserve(first), nil).Refused(t, 409, "stale_fence")
	equal(t, stale, doc{"presented": "1.1", "highest": "1.2", "reason": "superseded", "outcome": "not_applied"})

	w.DB.Advance(t, 31*time.Second) // expired, and nobody has taken it: not stale yet
	w.DoAs(t, w.Worker, "PUT", reserve(second), nil).Want(t, 201)
	w.DB.Exec(t, "UPDATE report SET fencing = 'live'")
	w.DoAs(t, w.Worker, "PUT", reserve(second), nil).Refused(t, 409, "lease_not_live")
	w.closeEpoch(t)
	equal(t, w.DoAs(t, w.Worker, "PUT", reserve(second), nil).Refused(t, 409, "stale_fence"), doc{"reason": "epoch_closed"})
}

// notFences are texts that are no fence.
var notFences = []string{
	"1", "1.", ".1", "1.1.1", "01.1", "1.01", "+1.1", "1.+1", "-1.1", "0.1", "1.0", "1.9223372036854775808", "2147483648.1", "1,1", "1.1x", "½.1",
}

func TestAPathIsOfAFenceAndAnID(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	for _, fence := range notFences {
		for _, request := range [][2]string{{"PUT", ""}, {"GET", ""}, {"DELETE", ""}, {"POST", "/seal"}} {
			equal(t, w.DoAs(t, w.Worker, request[0], objectPath("july", fence, "o")+request[1], nil).Refused(t, 400, "invalid_fence"),
				doc{"field": "fence"})
		}
	}
	for _, id := range []string{"-o", "..", ".hidden", "a%20b", strings.Repeat("o", 129)} {
		equal(t, w.DoAs(t, w.Worker, "PUT", objectPath("july", "1.1", id), nil).Refused(t, 400, "invalid_request"),
			doc{"field": "object_id"})
	}
	w.DoAs(t, w.Worker, "PUT", objectPath("july", "1.1", strings.Repeat("o", 128)), nil).Want(t, 201)
	w.DoAs(t, w.Worker, "PUT", objectPath("july", "2147483647.9223372036854775807", "o"), nil).Refused(t, 409, "fence_not_granted")
}

func TestADeclarationMustBePossible(t *testing.T) {
	t.Parallel()
	w := begin(t)
	path := objectPath("july", w.grant(t, "july", "a7"), "o")
	for _, c := range []struct {
		field string
		value any
	}{
		{"size", -1},
		{"size", staging.MaxUploadSize + 1},
		{"size", "5"},
		{"size", 1.5},
		{"sha256", "abc"},
		{"sha256", strings.Repeat("g", 64)},
		{"sha256", ""},
		{"content_type", ""},
		{"content_type", "csv"},
		{"content_type", "text/csv\r\nX-Evil: 1"},
		{"content_type", "text/" + strings.Repeat("x", 251)},
		{"filename", ""},
		{"filename", "a/b"},
		{"filename", `a\b`},
		{"filename", "a\nb"},
		{"filename", "a\x00b"},
		{"filename", strings.Repeat("ü", 256)},
	} {
		got := w.DoAs(t, w.Worker, "PUT", path, doc{c.field: c.value}).Refused(t, 400, "invalid_request")
		if got.String(t, "field") != c.field {
			t.Errorf("%s %v: %s", c.field, c.value, got.Body)
		}
	}
	w.DoAs(t, w.Worker, "PUT", path, raw(`{"size":null,"sha256":null,"content_type":null,"filename":null}`)).Want(t, 201)
	w.DoAs(t, w.Worker, "PUT", path, nil).Want(t, 200) // null is absent
	w.DoAs(t, w.Worker, "PUT", path, doc{}).Want(t, 200)
	w.DoAs(t, w.Worker, "PUT", path+"2", doc{"sha256": strings.ToUpper(hexDigest("x"))}).Want(t, 201)
}

func TestASealSaysWhatTheBytesAre(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	large := strings.Repeat("0123456789abcdef", 9<<20/16) // 9 MiB
	for object, c := range map[string]struct {
		content  string
		declared doc
		own      bool // by storage credentials of the worker's own
	}{
		"nothing":           {content: "", declared: doc{}},
		"declared-nothing":  {content: "", declared: doc{"size": 0, "sha256": hexDigest("")}},
		"own-nothing":       {content: "", declared: doc{"size": 0}, own: true},
		"plain":             {content: "hello", declared: doc{}},
		"sized":             {content: "hello", declared: doc{"size": 5}},
		"digested":          {content: "hello", declared: doc{"sha256": hexDigest("hello")}},
		"both":              {content: "hello", declared: doc{"size": 5, "sha256": hexDigest("hello"), "content_type": "text/plain; charset=utf-8"}},
		"own":               {content: "hello", declared: doc{"size": 5, "sha256": hexDigest("hello")}, own: true},
		"large":             {content: large, declared: doc{}},
		"large-and-all-set": {content: large, declared: doc{"size": len(large), "sha256": hexDigest(large)}},
		"own-large":         {content: large, declared: doc{}, own: true},
	} {
		if c.own {
			reserved := w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, object), c.declared).Want(t, 201)
			w.Storage.Put(t, reserved.String(t, "key"), c.content)
		} else {
			w.stage(t, "july", fence, object, c.content, c.declared)
		}
		var first string
		for range 2 { // it is idempotent
			got := w.DoAs(t, w.Worker, "POST", objectPath("july", fence, object)+"/seal", nil).Want(t, 200)
			members(t, got, "state", "size", "sha256", "etag")
			equal(t, got, doc{"state": "sealed", "size": len(c.content), "sha256": hexDigest(c.content)})
			if first != "" && first != got.String(t, "etag") || got.String(t, "etag") == "" {
				t.Errorf("%s: etag %q, then %s", object, first, got.Body)
			}
			first = got.String(t, "etag")
		}
	}
}

func TestASealRefusesBytesThatAreNotThereOrNotTheDeclaredOnes(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	seal := func(object string) string { return objectPath("july", fence, object) + "/seal" }
	w.DoAs(t, w.Worker, "POST", seal("never"), nil).Refused(t, 404, "object_not_found")
	w.DoAs(t, w.Worker, "POST", "/v1/reports/never/objects/1.1/o/seal", nil).Refused(t, 404, "object_not_found")

	w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "late"), nil).Want(t, 201)
	w.DoAs(t, w.Worker, "POST", seal("late"), nil).Refused(t, 409, "object_incomplete")

	for object, declared := range map[string]doc{"longer": {"size": 6}, "other": {"sha256": hexDigest("other")}} {
		reserved := w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, object), declared).Want(t, 201)
		if status, _ := upload(t, reserved, "hello"); status < 400 {
			t.Errorf("%s: the storage takes what was not declared: %d", object, status)
		}
		w.Storage.Put(t, reserved.String(t, "key"), "hello") // with credentials of its own nobody checks
		got := w.DoAs(t, w.Worker, "POST", seal(object), nil).Refused(t, 422, "object_mismatch")
		actual, _ := got.JSON(t)["actual"].(doc)
		if actual["size"].(json.Number).String() != "5" {
			t.Errorf("actual %s", got.Body)
		}
		equal(t, got, doc{"expected": declared})
	}
	w.stage(t, "july", fence, "gone", "hello", nil)
	w.DoAs(t, w.Worker, "DELETE", objectPath("july", fence, "gone"), nil).Want(t, 200)
	w.DoAs(t, w.Worker, "POST", seal("gone"), nil).Refused(t, 410, "object_gone")
	for field, body := range map[string]any{"pieces": doc{"pieces": []any{}}, "body": raw("[]")} {
		equal(t, w.DoAs(t, w.Worker, "POST", seal("late"), body).Refused(t, 400, "invalid_request"), doc{"field": field})
	}
}

func TestASealComparesNoFence(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "o", "hello", nil)
	w.overtake(t, "july", "b9")
	w.DoAs(t, w.Worker, "POST", objectPath("july", fence, "o")+"/seal", doc{}).Want(t, 200)
	w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "o"}).Refused(t, 409, "stale_fence")
}

func TestAnObjectTellsWhyItIsKept(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	path := objectPath("july", fence, "o")
	read := func() map[string]any { return w.DoAs(t, w.Worker, "GET", path, nil).Want(t, 200).JSON(t) }
	check := func(state string, kept, condemned any, eligible bool) {
		t.Helper()
		got := read()
		if got["state"] != state || got["kept_because"] != kept || got["condemned_because"] != condemned || (got["eligible_at"] != nil) != eligible {
			t.Errorf("object %v, want %s, kept because %v, condemned because %v, eligible %t", got, state, kept, condemned, eligible)
		}
	}
	w.DoAs(t, w.Worker, "GET", path, nil).Refused(t, 404, "object_not_found")
	w.stage(t, "july", fence, "o", "hello", doc{"content_type": "text/csv", "filename": "o.csv"})
	check("reserved", "within_retention", nil, true)
	w.DoAs(t, w.Worker, "POST", path+"/seal", nil).Want(t, 200)
	check("sealed", "within_retention", nil, true)
	w.DB.Advance(t, 25*time.Hour)
	check("sealed", nil, nil, true)
	w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "o"}).Want(t, 201)
	check("sealed", "visible", nil, false)
	w.publish(t, "july", "k2", doc{"fence": fence, "withdraw": true, "expected_version": 1}).Want(t, 201)
	check("sealed", "within_retention", nil, true)
	w.DoAs(t, w.Worker, "DELETE", path, nil).Refused(t, 409, "object_in_use")

	got := w.DoAs(t, w.Worker, "GET", path, nil).Want(t, 200)
	equal(t, got, doc{
		"report": "july", "object_id": "o", "fence": "1.1", "key": "reports/july/1.1/o", "declared": doc{},
		"size": 5, "sha256": hexDigest("hello"), "content_type": "text/csv", "filename": "o.csv",
	})
}

func TestADiscardNeedsNoFenceThatStillCounts(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	path := objectPath("july", fence, "o")
	w.DoAs(t, w.Worker, "DELETE", path, nil).Refused(t, 404, "object_not_found")
	w.stage(t, "july", fence, "o", "hello", nil)
	w.overtake(t, "july", "b9")
	for range 2 {
		got := w.DoAs(t, w.Worker, "DELETE", path, nil).Want(t, 200)
		members(t, got, "state")
		equal(t, got, doc{"state": "condemned"})
	}
	got := w.DoAs(t, w.Worker, "GET", path, nil).Want(t, 200)
	equal(t, got, doc{"state": "condemned", "condemned_because": "discarded", "kept_because": nil, "eligible_at": nil})
	if got.String(t, "purge_after") == "" {
		t.Errorf("purge_after is missing: %s", got.Body)
	}
}

func TestABodyWhereNoneIsExpectedIsRefused(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "o", "hello", nil)
	for _, path := range []string{july + "/leases/a7", objectPath("july", fence, "o")} {
		equal(t, w.DoAs(t, w.Worker, "DELETE", path, doc{"if_fence": "1.7"}).Refused(t, 400, "invalid_request"), doc{"field": "if_fence"})
		w.DoAs(t, w.Worker, "DELETE", path, raw("x"), "Content-Type", "text/plain").Refused(t, 415, "unsupported_media_type")
		w.DoAs(t, w.Worker, "DELETE", path, doc{}).Want(t, 200)
	}
}
