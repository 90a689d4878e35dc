package main_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/migrations"
)

func TestTheSchemaGoesUpAndDownFromTheCommandLine(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	settings := []string{"FENCELINE_DATABASE_URL=" + url}
	version := fmt.Sprint(migrations.Newest())

	// A state that does not fit is shown, and is a failure.
	if got := fenceline(t, settings, "migrate", "status").ends(t, 1, "not migrated"); got.Out == "" {
		t.Error("the state is not shown")
	}
	fenceline(t, settings, "migrate", "up").ends(t, 0, "version "+version)
	fenceline(t, settings, "migrate", "up").ends(t, 0, "version "+version)
	fenceline(t, settings, "migrate", "status").ends(t, 0, "schema version", "this program's", version)

	pool := testdb.Open(t, database.Config{URL: url, Pool: 1})
	if _, err := pool.Exec(t.Context(), `INSERT INTO report (report_id, created_at) VALUES ('july', now())`); err != nil {
		t.Fatal(err)
	}
	fenceline(t, settings, "migrate", "down").ends(t, 1, "reports", "--destroy")
	fenceline(t, settings, "migrate", "status").ends(t, 0)
	fenceline(t, settings, "migrate", "down", "--destroy").ends(t, 0, "removed")
	fenceline(t, settings, "migrate", "status").ends(t, 1)
	fenceline(t, settings, "migrate", "up").ends(t, 0)
}

func TestFiveMigrationsFromTheCommandLineAtOnceAllSucceed(t *testing.T) {
	t.Parallel()
	settings := []string{"FENCELINE_DATABASE_URL=" + testdb.Blank(t)}
	results := make([]result, 5)
	var migrating sync.WaitGroup
	for n := range results {
		migrating.Go(func() { results[n] = fenceline(t, settings, "migrate", "up") })
	}
	migrating.Wait()
	for _, r := range results {
		r.ends(t, 0, fmt.Sprint("version ", migrations.Newest()))
	}
	fenceline(t, settings, "migrate", "status").ends(t, 0)
}

func TestANewerSchemaIsLeftAloneByTheCommandLine(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	settings := []string{"FENCELINE_DATABASE_URL=" + url}
	fenceline(t, settings, "migrate", "up").ends(t, 0)
	pool := testdb.Open(t, database.Config{URL: url, Pool: 1})
	const newer = `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)`
	if _, err := pool.Exec(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	fenceline(t, settings, "migrate", "status").ends(t, 0, "999")
	fenceline(t, settings, "migrate", "up").ends(t, 1, "newer fenceline")
	fenceline(t, settings, "migrate", "down", "--destroy").ends(t, 1, "newer fenceline")
	if _, err := pool.Exec(t.Context(), `UPDATE schema_compatibility SET compatible_from = 999`); err != nil {
		t.Fatal(err)
	}
	fenceline(t, settings, "migrate", "status").ends(t, 1, "too old")
}
