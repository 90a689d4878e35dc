package service_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testservice"
)

// The commands of the runbook, as somebody on call pastes them, in the order in which they stand there.
func TestTheCommandsOfTheRunbookDoWhatTheySay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 20 {
		t.Fatalf("only %d blocks of commands were found", len(blocks))
	}
	s := testservice.Start(t, func(c *service.Config) { c.Metrics = true })
	for version := range 3 {
		publishAnew(t, s, fmt.Sprintf("v%d", version+1))
	}
	if _, _, err := s.OwnerKeys().Create(t.Context(), api.NewKey{Name: "renderer", Role: api.RoleWorker, Pattern: "sales.*"}); err != nil {
		t.Fatal(err)
	}
	// What somebody on call finds, and nobody makes for it.
	found := map[string]string{
		`"held_back":[^]]*]`: `for n in 1 2 3; do fl -X PUT "$july/objects/$(fl -X PUT "$july/leases/braked$n" -d '{"holder":"fails","ttl_ms":60000}' | field fence)/braked$n" -d '{}'; fl -X DELETE "$july/leases/braked$n"; done
psql "$FENCELINE_DATABASE_URL" -c "UPDATE object SET eligible_at = now() - interval '1 hour' WHERE state = 'reserved'"
fenceline gc run --gc-brake-min 1 --gc-brake-share 0.0001 --log-level error
`,
		"/lease/revoke": `fl -X PUT "$july/leases/stuck" -d '{"holder":"hangs","ttl_ms":60000}'` + "\n",
	}

	var session strings.Builder
	session.WriteString("set -euo pipefail\n")
	for i, block := range blocks {
		for named, setting := range found {
			if strings.Contains(block[1], named) {
				session.WriteString(setting)
			}
		}
		fmt.Fprintf(&session, "echo '# block %d' >&2\n%s", i+1, block[1])
	}
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Stdin = strings.NewReader(session.String())
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), "FENCELINE_URL="+s.URL, "FENCELINE_KEY="+s.Operator, "FENCELINE_DATABASE_URL="+s.DB.OwnerURL,
		"FENCELINE_BUCKET="+s.Storage.Config.Bucket)
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands failed: %v\n%s", err, output)
	}
	for _, want := range []string{
		`"result":"applied","report":"july","version":4`, // the older version, again
		`"result":"revoked"`, `"result":"frozen"`, `"result":"unfrozen"`, `"result":"held"`, `"result":"not_held"`,
		`"result":"erased"`, `"floor":3`, "the collector is paused", "the collector goes on", "It is kept because readers see it", "dry run: nothing was changed",
		`"report_only":true`, `{"result":"approved","run_id":3,"objects":0`, // the collector begins
		`{"result":"approved","run_id":4,"objects":2`, "held_back",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("nothing answers %s:\n%s", want, output)
		}
	}
}

// publishAnew publishes the next version of July, under a lease of its own.
func publishAnew(t testing.TB, s *testservice.Service, name string) {
	t.Helper()
	const july = "/v1/reports/july"
	fence := s.Do(t, "PUT", july+"/leases/"+name, map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201).String(t, "fence")
	s.Storage.Put(t, s.Do(t, "PUT", july+"/objects/"+fence+"/"+name, map[string]any{}).Want(t, 201).String(t, "key"), name)
	s.Do(t, "POST", july+"/publications", map[string]any{"fence": fence, "object_id": name}, "Idempotency-Key", name).Want(t, 201)
	s.Do(t, "DELETE", july+"/leases/"+name, nil).Want(t, 200)
}
