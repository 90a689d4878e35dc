package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/api"
)

type order struct {
	Holder   string            `json:"holder"`
	TTL      time.Duration     `json:"ttl_ms"`
	Version  *int64            `json:"version"`
	Withdraw bool              `json:"withdraw"`
	Metadata map[string]string `json:"metadata"`
	Parts    []struct {
		ETag string `json:"etag"`
	} `json:"parts"`
}

// echoing is a route that answers with what it has decoded.
func echoing(path string, decode func(echo.Context) (order, error)) api.Route {
	return api.Route{Method: http.MethodPut, Path: path, Mutates: true, Handler: func(c echo.Context) error {
		o, err := decode(c)
		if err != nil {
			return err
		}
		return api.WriteJSON(c, http.StatusOK, o)
	}}
}

func TestABodyIsReadStrictly(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, echoing("/order", api.Decode[order]))
	cases := []struct {
		name, body, field, detail string
	}{
		{"an empty body", ``, "body", "JSON object"},
		{"no object", `[]`, "body", "JSON object"},
		{"null", `null`, "body", "JSON object"},
		{"half an object", `{"holder":"a"`, "body", "not valid JSON"},
		{"something behind it", `{"holder":"a"} {}`, "body", "not valid JSON"},
		{"an unknown member", `{"hodler":"a"}`, "hodler", "no such member"},
		{"another case", `{"Holder":"a"}`, "Holder", "no such member"},
		{"a repeated member", `{"holder":"a","holder":"b"}`, "holder", "more than once"},
		{"a repeated key", `{"metadata":{"k":"a","k":"b"}}`, "metadata.k", "more than once"},
		{"an unknown member below", `{"parts":[{"etag":"a"},{"tag":"b"}]}`, "parts.1.tag", "no such member"},
		{"a number for a string", `{"holder":7}`, "holder", "must be a string"},
		{"a string for a number", `{"ttl_ms":"7"}`, "ttl_ms", "milliseconds"},
		{"half a millisecond", `{"ttl_ms":0.5}`, "ttl_ms", "milliseconds"},
		{"three centuries", `{"ttl_ms":9223372036855}`, "ttl_ms", "milliseconds"},
		{"a number too large", `{"version":9223372036854775808}`, "version", "whole number"},
		{"a word for a bool", `{"withdraw":"true"}`, "withdraw", "true or false"},
		{"a list for an object", `{"metadata":[]}`, "metadata", "an object"},
		{"an object for a list", `{"parts":{}}`, "parts", "an array"},
		{"invalid UTF-8", "{\"holder\":\"\xff\"}", "holder", "not valid JSON"},
		{"half a surrogate pair", `{"holder":"\ud800"}`, "holder", "not valid JSON"},
		{"NUL", `{"holder":"a\u0000b"}`, "holder", "U+0000"},
		{"NUL below", `{"metadata":{"k":"\u0000"}}`, "metadata.k", "U+0000"},
		{"NUL in a name", `{"metadata":{"k\u0000":"v"}}`, "metadata.k�", "U+0000"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, server, http.MethodPut, "/order", c.body, "Content-Type", "application/json")
			if got.Status != 400 || got.JSON["code"] != "invalid_request" || got.JSON["outcome"] != "not_applied" {
				t.Fatalf("answer: %d %s", got.Status, got.Body)
			}
			detail, _ := got.JSON["detail"].(string)
			if got.JSON["field"] != c.field || !strings.Contains(detail, c.detail) {
				t.Errorf("field %q, detail %q; want %q and %q", got.JSON["field"], detail, c.field, c.detail)
			}
			for _, inside := range []string{"Go ", "api_test", "jsontext", "int64", "Duration"} {
				if strings.Contains(got.Body, inside) {
					t.Errorf("the answer speaks of the inside: %s", got.Body)
				}
			}
		})
	}
}

func TestABodyThatIsFineIsDecoded(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, echoing("/order", api.Decode[order]))
	const body = `{"holder":"worker-7 \\u0000","ttl_ms":30000,"version":9223372036854775807,"withdraw":false,"metadata":{"k":"v"},"parts":[]}`
	for _, mediaType := range []string{"application/json", "Application/JSON; charset=utf-8"} {
		got := ask(t, server, http.MethodPut, "/order", " "+body+"\n", "Content-Type", mediaType)
		if got.Status != 200 || got.Body != body {
			t.Errorf("%s: %d %s", mediaType, got.Status, got.Body)
		}
	}
}

func TestABodyThatIsNotJSONIsUnsupported(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, echoing("/order", api.Decode[order]))
	for _, headers := range [][]string{
		nil,
		{"Content-Type", "text/plain"},
		{"Content-Type", "application/x-www-form-urlencoded"},
		{"Content-Type", "application/json; ="},
		{"Content-Type", "application/json", "Content-Encoding", "gzip"},
	} {
		got := ask(t, server, http.MethodPut, "/order", `{}`, headers...)
		if got.Status != 415 || got.JSON["code"] != "unsupported_media_type" || got.JSON["outcome"] != "not_applied" {
			t.Errorf("%v: %d %s", headers, got.Status, got.Body)
		}
	}
}

func TestABodyMayBeLeftAwayWhereTheRouteSaysSo(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, echoing("/order", api.DecodeOptional[order]))
	if got := ask(t, server, http.MethodPut, "/order", ""); got.Status != 200 {
		t.Errorf("without a body: %d %s", got.Status, got.Body)
	}
	if got := ask(t, server, http.MethodPut, "/order", `{"x":1}`, "Content-Type", "application/json"); got.Status != 400 {
		t.Errorf("with a wrong body: %d %s", got.Status, got.Body)
	}
	if got := ask(t, server, http.MethodPut, "/order", `{}`); got.Status != 415 {
		t.Errorf("with a body of no type: %d %s", got.Status, got.Body)
	}
}

func TestABodyOver64KiBIsTooLarge(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, echoing("/order", api.Decode[order]),
		api.Route{Method: http.MethodDelete, Path: "/order", Mutates: true, Handler: noContent})
	fits := `{"holder":"` + strings.Repeat("a", 64<<10-len(`{"holder":""}`)) + `"}`
	for _, chunked := range []bool{false, true} {
		for body, status := range map[string]int{fits: 200, fits + " ": 413} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/order", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if chunked {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
			}
			r.Header.Set("Content-Type", "application/json")
			got := send(t, server, r)
			if got.Status != status {
				t.Errorf("%d bytes, chunked %t: %d, want %d", len(body), chunked, got.Status, status)
			}
			if status == 413 && (got.JSON["code"] != "body_too_large" || got.JSON["outcome"] != "not_applied") {
				t.Errorf("document: %s", got.Body)
			}
		}
	}
	if got := ask(t, server, http.MethodDelete, "/order", fits+" "); got.Status != 413 {
		t.Errorf("a route without a body: %d", got.Status)
	}
}

func TestTimesAreInUTCAndDurationsInMilliseconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 31, 23, 30, 0, 250e6, time.FixedZone("", -4*3600))
	server := start(t, api.Config{}, api.Route{Method: http.MethodGet, Path: "/now", Handler: func(c echo.Context) error {
		return api.WriteJSON(c, http.StatusOK, struct {
			At        time.Time      `json:"at"`
			Until     *time.Time     `json:"until"`
			Never     *time.Time     `json:"never"`
			Remaining time.Duration  `json:"remaining_ms"`
			Waited    *time.Duration `json:"waited_ms"`
		}{At: at, Until: &at, Remaining: 1999 * time.Microsecond})
	}})
	const want = `{"at":"2026-08-01T03:30:00.25Z","until":"2026-08-01T03:30:00.25Z","never":null,"remaining_ms":1,"waited_ms":null}`
	if got := ask(t, server, http.MethodGet, "/now", ""); got.Body != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
}
