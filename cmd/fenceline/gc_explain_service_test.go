package main_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testservice"
)

// operatorSettings are those of an operator of the service.
func operatorSettings(s *testservice.Service) []string {
	return []string{"FENCELINE_URL=" + s.URL, "FENCELINE_KEY=" + s.Operator}
}

// objectOf stages an object under a new grant of the report, by a lease of this id, and returns FENCE/OBJECT.
func objectOf(t *testing.T, s *testservice.Service, report, lease, object string) string {
	t.Helper()
	path := "/v1/reports/" + report
	fence := s.Do(t, "PUT", path+"/leases/"+lease, map[string]any{"holder": "A", "ttl_ms": 60_000}).Want(t, 201).String(t, "fence")
	key := s.Do(t, "PUT", path+"/objects/"+fence+"/"+object, map[string]any{}).Want(t, 201).String(t, "key")
	s.Storage.Put(t, key, "hello")
	s.Do(t, "POST", path+"/objects/"+fence+"/"+object+"/seal", nil).Want(t, 200)
	return fence + "/" + object
}

// publishObject publishes what objectOf staged, and ends its lease.
func publishObject(t *testing.T, s *testservice.Service, report, lease, named string) {
	t.Helper()
	path := "/v1/reports/" + report
	fence, object, _ := strings.Cut(named, "/")
	s.Do(t, "POST", path+"/publications", map[string]any{"fence": fence, "object_id": object}, "Idempotency-Key", lease).Want(t, 201)
	s.Do(t, "DELETE", path+"/leases/"+lease, nil).Want(t, 200)
}

func TestExplainSaysWhyAnObjectIsKeptOrWhenItGoes(t *testing.T) {
	t.Parallel()
	// What is staged first, and never published.
	unpublished := func(t *testing.T, s *testservice.Service) string { return objectOf(t, s, "july", "a7", "o") }
	// What is published, and followed by another version.
	followed := func(t *testing.T, s *testservice.Service) string {
		named := objectOf(t, s, "july", "a7", "o")
		publishObject(t, s, "july", "a7", named)
		publishObject(t, s, "july", "b9", objectOf(t, s, "july", "b9", "next"))
		return named
	}
	collect := func(t *testing.T, s *testservice.Service) {
		fenceline(t, append(storageSettings(s.Storage), "FENCELINE_DATABASE_URL="+s.DB.URL, "FENCELINE_LOG_LEVEL=error", "FENCELINE_GC_FIRST_RUN=collect"), "gc", "run").ends(t, 0)
	}
	const july = "/v1/reports/july"
	for name, c := range map[string]struct {
		set  func(*testing.T, *testservice.Service) string
		says []string
	}{
		"visible": {func(t *testing.T, s *testservice.Service) string {
			named := unpublished(t, s)
			publishObject(t, s, "july", "a7", named)
			return named
		}, []string{"is sealed", "readers see it"}},
		"held": {func(t *testing.T, s *testservice.Service) string {
			named := followed(t, s)
			s.Do(t, "PUT", july+"/publications/1/hold", nil).Want(t, 200)
			return named
		}, []string{"is held", "until the hold is lifted"}},
		"one of the newest versions": {func(t *testing.T, s *testservice.Service) string {
			s.Do(t, "PATCH", july+"/settings", map[string]any{"keep_versions": 1}).Want(t, 200)
			return followed(t, s)
		}, []string{"keep_versions"}},
		"superseded, within retention": {followed, []string{"its retention lasts until 20"}},
		"staged, within retention":     {unpublished, []string{"its retention lasts until 20"}},
		"under a live lease": {func(t *testing.T, s *testservice.Service) string {
			named := unpublished(t, s)
			s.DB.Advance(t, 25*time.Hour)
			fence, _, _ := strings.Cut(named, "/")
			s.DB.Exec(t, "UPDATE report SET lease_expires_at = fenceline_now() + interval '1 minute'")
			return fence + "/o"
		}, []string{"is due", "lease under which it was staged is live, until 20"}},
		"frozen": {func(t *testing.T, s *testservice.Service) string {
			named := unpublished(t, s)
			s.DB.Advance(t, 25*time.Hour)
			s.Do(t, "POST", "/v1/freeze", map[string]any{"pattern": "july"}).Want(t, 200)
			return named
		}, []string{"is due", "frozen"}},
		"due, never published": {func(t *testing.T, s *testservice.Service) string {
			named := unpublished(t, s)
			s.DB.Advance(t, 25*time.Hour)
			return named
		}, []string{"it is due", "never published", "the next pass condemns it"}},
		"due, superseded": {func(t *testing.T, s *testservice.Service) string {
			named := followed(t, s)
			s.DB.Advance(t, 400*time.Hour)
			return named
		}, []string{"it is due", "superseded"}},
		"condemned": {func(t *testing.T, s *testservice.Service) string {
			named := unpublished(t, s)
			s.DB.Advance(t, 25*time.Hour)
			collect(t, s)
			return named
		}, []string{"is condemned", "never published", "deleted from 20", "final"}},
		"discarded": {func(t *testing.T, s *testservice.Service) string {
			named := unpublished(t, s)
			s.Do(t, "DELETE", july+"/objects/"+named, nil).Want(t, 200)
			return named
		}, []string{"is condemned", "discarded it"}},
		"deleted": {func(t *testing.T, s *testservice.Service) string {
			named := unpublished(t, s)
			s.Do(t, "DELETE", july+"/objects/"+named, nil).Want(t, 200)
			s.DB.Advance(t, 26*time.Hour)
			collect(t, s)
			return named
		}, []string{"is deleted", "discarded it", "its bytes are gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testservice.Start(t)
			named := c.set(t, s)
			operator := operatorSettings(s)
			got := fenceline(t, operator, "gc", "explain", "july", named).ends(t, 0, append(c.says, named)...)
			if strings.Count(got.Out, "\n") != 1 || got.Remark != "" {
				t.Errorf("it says %q, and remarks %q", got.Out, got.Remark)
			}
			var shown map[string]any
			if err := json.Unmarshal([]byte(fenceline(t, operator, "gc", "explain", "july", named, "--json").ends(t, 0).Out), &shown); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(document(t, s, july+"/objects/"+named), shown); diff != "" {
				t.Errorf("as JSON it is not what the service answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainFindsTheObjectsOfAnIdNewestGrantFirst(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	operator := operatorSettings(s)
	first := objectOf(t, s, "july", "a7", "july.csv")
	publishObject(t, s, "july", "a7", first)
	publishObject(t, s, "july", "b9", objectOf(t, s, "july", "b9", "other.csv"))
	third := objectOf(t, s, "july", "c1", "july.csv")
	var starts []string
	for line := range strings.Lines(fenceline(t, operator, "gc", "explain", "july", "july.csv").ends(t, 0).Out) {
		starts = append(starts, strings.Fields(line)[0])
	}
	if diff := cmp.Diff([]string{third, first}, starts); diff != "" {
		t.Errorf("explained (-want +got):\n%s", diff)
	}
	var list map[string]any
	if err := json.Unmarshal([]byte(fenceline(t, operator, "gc", "explain", "july", "july.csv", "--json").ends(t, 0).Out), &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(document(t, s, "/v1/reports/july/objects?object_id=july.csv"), list); diff != "" {
		t.Errorf("as JSON they are not what the service lists (-want +got):\n%s", diff)
	}
}

func TestExplainOfWhatNobodyKnowsEndsWith6(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	operator := operatorSettings(s)
	objectOf(t, s, "july", "a7", "july.csv")
	fenceline(t, operator, "gc", "explain", "july", "1.1/june.csv").ends(t, 6, "june.csv")
	fenceline(t, operator, "gc", "explain", "july", "1.2/july.csv").ends(t, 6, "1.2/july.csv")
	fenceline(t, operator, "gc", "explain", "july", "june.csv").ends(t, 6, "june.csv", "never reserved")
	fenceline(t, operator, "gc", "explain", "august", "july.csv").ends(t, 6, "august")
	fenceline(t, operator, "gc", "explain", "july", "1,1/july.csv").ends(t, 2, "1,1")
	fenceline(t, operator, "gc", "explain", "july", "1.1/no such").ends(t, 2, "no such")
	fenceline(t, operator, "gc", "explain", "july", "no such").ends(t, 2, "no such")
}
