package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// verifiable publishes a version of each report, and returns the settings of `verify`.
func verifiable(t *testing.T, s *testservice.Service, reports ...string) []string {
	t.Helper()
	for _, report := range reports {
		address := "/v1/reports/" + report
		fence := s.Do(t, "PUT", address+"/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201).String(t, "fence")
		key := s.Do(t, "PUT", address+"/objects/"+fence+"/data", map[string]any{}).Want(t, 201).String(t, "key")
		s.Storage.Put(t, key, "hello")
		s.Do(t, "POST", address+"/publications", map[string]any{"fence": fence, "object_id": "data"}, "Idempotency-Key", "k1").Want(t, 201)
	}
	return verifySettings(s.DB, s.Storage)
}

func verifySettings(db *testdb.DB, storage *testbucket.Bucket) []string {
	return append(storageSettings(storage), "FENCELINE_DATABASE_URL="+db.URL, "FENCELINE_LOG_LEVEL=error")
}

func TestVerifyTellsEachFaultAndThatThereIsNone(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings := verifiable(t, s, "july", "june")
	fenceline(t, settings, "verify").ends(t, 0, "verification 1 completed: 2 objects (10 bytes), 0 faults")
	fenceline(t, settings, "verify", "--deep").ends(t, 0, "verification 2 completed: 2 objects (10 bytes, all bytes read), 0 faults")

	s.Storage.Put(t, "reports/july/1.1/data", "hell")
	s.Storage.Delete(t, "reports/june/1.1/data")
	got := fenceline(t, settings, "verify")
	if got.Code != 9 || !strings.Contains(got.Remark, "not everything is in the storage as it was published: 2 of 2 objects") {
		t.Errorf("exit code %d: %s", got.Code, got.Remark)
	}
	const published = "  published: 5 bytes, sha256 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824, ETag \"5d41402abc4b2a76b9719d911017c592\"\n"
	if diff := cmp.Diff("SIZE: july, version 1, visible: reports/july/1.1/data\n"+published+
		"  found:     4 bytes, ETag \"4229d691b07b13341da53f17ab9f2416\"\n"+
		"MISSING: june, version 1, visible: reports/june/1.1/data\n"+published+"  found:     nothing\n"+
		"verification 3 completed: 2 objects (10 bytes), 2 faults\n", got.Out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}

	got = fenceline(t, settings, "verify", "--json", "--report=ju*")
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	var fault struct {
		Report, Fault string
		Versions      []int
		Published     struct{ Size int }
		Found         *struct{ Size int }
	}
	var whole struct {
		Faults   int
		Reports  string
		Verified struct{ Objects, Bytes int }
	}
	if len(lines) != 3 || json.Unmarshal([]byte(lines[1]), &fault) != nil || json.Unmarshal([]byte(lines[2]), &whole) != nil {
		t.Fatalf("printed was %q", got.Out)
	}
	for i, kind := range []string{"finding", "finding", "verification"} {
		if got := parsed(t, lines[i])[0]["type"]; got != kind {
			t.Errorf("line %d has the type %v, want %s", i+1, got, kind)
		}
	}
	if fault.Report != "june" || fault.Fault != "missing" || fault.Found != nil || fault.Published.Size != 5 || whole.Faults != 2 || whole.Verified.Objects != 2 || whole.Reports != "ju*" {
		t.Errorf("printed was %q", got.Out)
	}

	fenceline(t, settings, "verify", "--report", "august").ends(t, 0, "0 objects (0 bytes), 0 faults")
	s.Storage.Put(t, "reports/july/1.1/data", "hello")
	fenceline(t, settings, "verify", "--report", "july").ends(t, 0, "1 objects (5 bytes), 0 faults")
}

func TestVerifyRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings := verifiable(t, s, "july")
	fenceline(t, settings, "verify", "--report=**").ends(t, 2, "--report")
	fenceline(t, settings, "verify", "--verify-concurrency=0").ends(t, 2, "--verify-concurrency")
	fenceline(t, settings, "verify", "--pace=-1").ends(t, 2, "--verify-pace")
	away := s.Storage.Behind(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	fenceline(t, verifySettings(s.DB, away), "verify").ends(t, 7, "the storage is away", "goes on from there")
	fenceline(t, verifySettings(s.DB, testbucket.New(t)), "verify").ends(t, 1, "the catalog's objects are in another bucket")
}
