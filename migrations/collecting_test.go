package migrations_test

import (
	"database/sql"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that the migration tool uses
	"github.com/pressly/goose/v3"

	"github.com/fenceline/fenceline/internal/testdb"
)

// upTo brings a blank database to an older schema, as another release left it.
func upTo(t testing.TB, url string, version int64) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatalf("up to %d: %v", version, err)
	}
}

func TestAnInstallationThatHasCollectedGoesOnCollecting(t *testing.T) {
	t.Parallel()
	run := func(dry, outcome string) string {
		return `INSERT INTO gc_run (dry_run, started_by, started_at, beat_at, phase, finished_at, outcome,
				brake_min, brake_objects, brake_bytes, brake_used_objects, brake_used_bytes)
			VALUES (` + dry + `, 'schedule', '2026-01-01Z', '2026-01-01Z', 'done', '2026-01-02Z', '` + outcome + `', 20, 0, 0, 0, 0)`
	}
	const condemned = `
		WITH july AS (INSERT INTO report (report_id, created_at) VALUES ('july', now()) RETURNING report_id)
		INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, reserved_at, upload_until,
			condemned_at, condemned_reason, purge_after)
		SELECT report_id, 1, 1, 'a', '', 'condemned', now(), now(), '2026-01-02Z', 'discarded', now() FROM july`
	for name, tc := range map[string]struct{ past, since string }{
		"it is new":                    {"SELECT", "never"},
		"a pass has completed":         {run("false", "completed"), "2026-01-02"},
		"a dry run has completed":      {run("true", "completed"), "never"},
		"a pass has failed":            {run("false", "failed"), "never"},
		"something has been condemned": {condemned, "2026-01-02"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.Blank(t)
			upTo(t, url, 3)
			pool := open(t, url)
			if _, err := pool.Exec(t.Context(), tc.past); err != nil {
				t.Fatal(err)
			}
			up(t, url)
			call(t, pool, "verified", `SELECT CASE status WHEN 'advanced' THEN 'verified' ELSE status END FROM verify_epoch()`)
			call(t, pool, tc.since, `SELECT coalesce(to_char(collecting_since AT TIME ZONE 'UTC', 'YYYY-MM-DD'), 'never') FROM deployment`)
			reports := map[bool]string{true: "started reports", false: "started collects"}[tc.since == "never"]
			call(t, pool, reports, `
				SELECT status || CASE WHEN report_only THEN ' reports' ELSE ' collects' END
				FROM begin_run(false, 'schedule', 30000, 0.2, 20, 86400000, true, true)`)
		})
	}
}
