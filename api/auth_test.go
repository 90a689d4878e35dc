package api_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/api"
)

// secrets is an Authenticate that knows these keys; `down` stands for a
// database that is away.
func secrets(keys map[string]api.Key) func(context.Context, string) (api.Key, error) {
	return func(_ context.Context, secret string) (api.Key, error) {
		if secret == "down" {
			return api.Key{}, errors.New("connection refused by 10.0.0.7")
		}
		key, ok := keys[secret]
		if !ok {
			return api.Key{}, api.ErrUnauthenticated
		}
		return key, nil
	}
}

func bearer(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

func basic(user, password string) []string {
	return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

func whoami(c echo.Context) error { return c.String(http.StatusOK, api.KeyOf(c).ID) }

func TestAKeyOpensAsBearerAndAsBasicPassword(t *testing.T) {
	t.Parallel()
	log := newLogBuffer()
	server := start(t, api.Config{
		Log:          log.logger(),
		Authenticate: secrets(map[string]api.Key{"s3cr3t": {ID: "k1", Role: api.RoleReader, Pattern: "*"}}),
	}, api.Route{Method: http.MethodGet, Path: "/whoami", Role: api.RoleReader, Handler: whoami})

	for _, headers := range [][]string{bearer("s3cr3t"), {"Authorization", "bearer  s3cr3t"}, basic("", "s3cr3t"), basic("anybody", "s3cr3t")} {
		if got := ask(t, server, http.MethodGet, "/whoami", "", headers...); got.Status != 200 || got.Body != "k1" {
			t.Errorf("%v: %d %s", headers, got.Status, got.Body)
		}
	}
	if text := log.String(); strings.Contains(text, "s3cr3t") || !strings.Contains(text, `"key_id":"k1"`) {
		t.Errorf("log: %s", text)
	}
	for _, headers := range [][]string{
		nil,
		bearer(""), bearer("wrong"), basic("s3cr3t", ""),
		{"Authorization", "s3cr3t"},
		{"Authorization", "Digest s3cr3t"},
		append(bearer("s3cr3t"), bearer("wrong")...),
	} {
		got := ask(t, server, http.MethodGet, "/whoami", "", headers...)
		if got.Status != 401 || got.JSON["code"] != "unauthenticated" {
			t.Errorf("%v: %d %s", headers, got.Status, got.Body)
		}
		challenges := got.Header.Values("WWW-Authenticate")
		if !slices.ContainsFunc(challenges, hasScheme("Bearer")) || !slices.ContainsFunc(challenges, hasScheme("Basic")) {
			t.Errorf("challenges %q", challenges)
		}
	}
}

func hasScheme(scheme string) func(string) bool {
	return func(challenge string) bool { return strings.HasPrefix(challenge, scheme+" ") }
}

func TestAKeyThatCannotBeCheckedIsNotRefused(t *testing.T) {
	t.Parallel()
	log := newLogBuffer()
	server := start(t, api.Config{Log: log.logger(), Authenticate: secrets(nil)},
		api.Route{Method: http.MethodPost, Path: "/change", Role: api.RoleWorker, Mutates: true, Handler: noContent})
	got := ask(t, server, http.MethodPost, "/change", "", bearer("down")...)
	if got.Status != 503 || got.JSON["code"] != "unavailable" || got.JSON["outcome"] != "not_applied" || got.Header.Get("Retry-After") == "" {
		t.Errorf("answer: %d %s", got.Status, got.Body)
	}
	if strings.Contains(got.Body, "10.0.0.7") || !strings.Contains(log.String(), "10.0.0.7") {
		t.Errorf("body %s, log %s", got.Body, log)
	}
}

func TestARoleMayDoWhatTheLesserOnesMay(t *testing.T) {
	t.Parallel()
	keys := map[string]api.Key{"nobody": {Role: "guest", Pattern: "*"}}
	for _, role := range api.Roles() {
		keys[string(role)] = api.Key{ID: string(role), Role: role, Pattern: "*"}
	}
	cfg := api.Config{Authenticate: secrets(keys)}
	var routes []api.Route
	for _, role := range api.Roles() {
		routes = append(routes, api.Route{
			Method: http.MethodPost, Path: "/" + string(role), Role: role, Mutates: true, Handler: noContent,
		})
	}
	server := start(t, cfg, routes...)
	for has, has_ := range map[string]int{"nobody": -1, "reader": 0, "worker": 1, "operator": 2} {
		for needs, role := range api.Roles() {
			want := http.StatusForbidden
			if has_ >= needs {
				want = http.StatusNoContent
			}
			got := ask(t, server, http.MethodPost, "/"+string(role), "", bearer(has)...)
			if got.Status != want {
				t.Errorf("%s on a route for %s: %d, want %d", has, role, got.Status, want)
			}
			if want == 403 && (got.JSON["code"] != "forbidden" || got.JSON["outcome"] != "not_applied") {
				t.Errorf("document: %s", got.Body)
			}
		}
	}
}

func TestAKeyIsForTheReportsOfItsPattern(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{Authenticate: secrets(map[string]api.Key{
		"sales": {Role: api.RoleReader, Pattern: "sales.*"},
	})}, api.Route{Method: http.MethodGet, Path: "/v1/reports/:report/lease", Role: api.RoleReader, Handler: noContent})
	for report, want := range map[string]int{
		"sales.july": 204, "sales.": 204, "sales%2Ejuly": 204, "sale%73.july": 204,
		"sales": 403, "salesXjuly": 403, "Sales.july": 403, "july": 403,
		"-sales": 400, "sales.%00": 400, "sales.%FF": 400, "sales.%20": 400, "sales.*": 400, "..": 400,
		"sales." + strings.Repeat("x", 195): 400,
	} {
		got := ask(t, server, http.MethodGet, "/v1/reports/"+report+"/lease", "", bearer("sales")...)
		if got.Status != want {
			t.Errorf("%s: %d, want %d", report, got.Status, want)
		}
		if want == 400 && got.JSON["field"] != "report" {
			t.Errorf("%s: %s", report, got.Body)
		}
	}
}
