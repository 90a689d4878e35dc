package main_test

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/collect"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// collection is a field for the collector of a service of the test's own: small ones of which nothing is measured.
func collection(t *testing.T, s *testservice.Service, cfg collect.Config) *collect.Field {
	t.Helper()
	cfg.OwnerURL, cfg.Storage = s.DB.OwnerURL, s.Storage.Config
	cfg.Service = client.Config{URL: s.URL, Key: s.Worker}
	cfg.Program = os.Args[0]
	cfg.Env = append(append(programOnPath(t), storageSettings(s.Storage)...), "FENCELINE_DATABASE_URL="+s.DB.URL,
		"FENCELINE_PURGE_GRACE=2s", "FENCELINE_DOWNLOAD_URL_LIFE=1s", "FENCELINE_GC_BRAKE_SHARE=1", "FENCELINE_GC_FIRST_RUN=collect")
	cfg.Tell = func(what string) { t.Log(what) }
	field, err := collect.Prepare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(field.Close)
	return field
}

func TestExactlyWhatWasDueIsCollectedThoughTheCollectorIsKilledTwiceAndOthersPublish(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	field := collection(t, s, collect.Config{
		Objects: 8000, Foreign: 60, Unknown: 40, Publishers: 4, Kills: 2, Quiet: time.Second,
		Killed: func(context.Context) error { // instead of waiting until the pass is written off
			s.DB.Advance(t, 31*time.Second)
			return nil
		},
	})
	r, err := field.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range r.Broken {
		t.Error(what)
	}
	if len(r.Kills) != 2 || r.Passes < 3 || r.Quiet.N == 0 || r.During.N == 0 || r.Checked < r.Quiet.N+r.During.N || r.PeakRSS == 0 || len(r.Samples) < 3 {
		t.Errorf("too little has happened: %+v", r)
	}
	for _, k := range r.Kills {
		if k.Moved == 0 || k.Begun > k.Moved {
			t.Errorf("after a kill the next pass began after %v, and did something after %v", k.Begun, k.Moved)
		}
	}
}

func TestWhatTheCollectorHasMissedAndWhatItHasTakenBesidesIsFound(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	field := collection(t, s, collect.Config{Objects: 200, Foreign: 10, Unknown: 10, Publishers: 1, Quiet: time.Second, Memory: 1})
	if err := field.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	const left = `SELECT key FROM object WHERE object_id = $1`
	s.Storage.Put(t, testdb.Value[string](t, s.DB, left, "due-00000003"), "it was missed")
	s.Storage.Delete(t, "archive/00000/foreign-00000000")
	s.Storage.Delete(t, "reports/lost-00000/1.1/unknown-00000001")
	s.Storage.Delete(t, testdb.Value[string](t, s.DB, left, "kept-00000"))
	s.Storage.Put(t, testdb.Value[string](t, s.DB, left, "published-0-0"), "other bytes")
	s.DB.Exec(t, `UPDATE object SET state = 'condemned', condemned_at = now(), condemned_reason = 'discarded', purge_after = now(), eligible_at = NULL
		WHERE object_id = 'kept-00000'`)
	s.DB.Exec(t, `INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, reserved_at, upload_until, eligible_at)
		VALUES ('collected-00000', 1, 1, 'due-missed', '', 'reserved', now(), now(), now())`)
	const again = `INSERT INTO gc_ledger (run_id, at, action, reason, report_id, fence_epoch, fence_counter, object_id, key)
		SELECT 1, now(), 'deleted', 'discarded', report_id, fence_epoch, fence_counter, object_id, key FROM object WHERE object_id = $1`
	s.DB.Exec(t, again, "due-00000005")
	s.DB.Exec(t, again, "kept-00000")

	r, err := field.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	measured := regexp.MustCompile(`: (\d bytes, |content |fetch ).*|had \d+`) // what the machine and the storage say
	for i, what := range r.Broken {
		r.Broken[i] = measured.ReplaceAllString(what, "…")
	}
	if diff := cmp.Diff([]string{
		"rows: of 200 objects that were due 201 are there, and 200 are deleted",
		"rows: 1 objects that were due have another reason than they must",
		"rows: 1 objects were condemned that were not due",
		"rows: of 1 objects that are kept 0 are still sealed",
		"ledger: of 200 objects that were due it knows 200, and 1 of them not as condemned once and deleted once",
		"ledger: 1 objects were condemned or deleted that were not due",
		"bucket: the bytes of 1 objects that were due are still there",
		"bucket: of 1 objects that are kept 0 are there",
		"bucket: of 10 foreign keys 9 are there",
		"bucket: of 10 unknown keys 9 are there",
		"bucket: the kept object reports/collected-00000/1.1/kept-00000…",
		"version 1 of collected-00000 does not resolve to what was published…",
		"the collector … bytes in use, more than 1",
	}, r.Broken); diff != "" {
		t.Errorf("broken (-want +got):\n%s", diff)
	}
}
