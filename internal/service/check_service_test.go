package service_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
	"github.com/fenceline/fenceline/migrations"
	"github.com/fenceline/fenceline/staging"
)

// check opens a service, asks it whether it could start, and closes it.
func check(t testing.TB, cfg service.Config) (warnings []string, err error) {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s, err := service.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open the service: %v", err)
	}
	defer s.Close()
	return s.Check(t.Context())
}

// config is that of a service on a database and a bucket.
func config(url string, storage *testbucket.Bucket) service.Config {
	return service.Config{Database: database.Config{URL: url, Pool: 4}, Bucket: storage.Config}
}

func TestAServiceOnSoundGroundHasNothingToWarnOf(t *testing.T) {
	t.Parallel()
	warnings, err := check(t, config(testdb.Empty(t).URL, testbucket.New(t)))
	if err != nil || len(warnings) > 0 {
		t.Errorf("got %v, %v", warnings, err)
	}
}

func TestAStorageThatOverwritesStopsTheStart(t *testing.T) {
	t.Parallel()
	cfg := config(testdb.Empty(t).URL, testbucket.New(t).IgnoringConditions(t))
	if _, err := check(t, cfg); !errors.Is(err, staging.ErrOverwrites) {
		t.Errorf("got %v, want ErrOverwrites", err)
	}
}

func TestAStorageThatOverwritesIsAWarningWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t).IgnoringConditions(t)
	s := testservice.Start(t, func(c *service.Config) {
		c.Bucket = storage.Config
		c.AllowOverwrites = true
	})
	if warnings := shownWarnings(t, s); len(warnings) != 1 || !strings.Contains(warnings[0], "If-None-Match: *") {
		t.Errorf("the status warns of %v", warnings)
	}
}

func TestAStorageThatIsAwayIsNotTakenForOneThatOverwrites(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	storage.Config.Endpoint = "http://127.0.0.1:1"
	cfg := config(testdb.Empty(t).URL, storage)
	cfg.AllowOverwrites = true
	if _, err := check(t, cfg); !errors.Is(err, staging.ErrStorageUnavailable) || errors.Is(err, staging.ErrOverwrites) {
		t.Errorf("got %v, want ErrStorageUnavailable alone", err)
	}
}

func TestAServiceThatIsConnectedAsTheOwnerWarnsOfIt(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	s := testservice.StartOn(t, db, func(c *service.Config) { c.Database.URL = db.OwnerURL })
	if warnings := shownWarnings(t, s); !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "fenceline_service") }) {
		t.Errorf("the status warns of %v", warnings)
	}
	as := testservice.Start(t)
	if warnings := shownWarnings(t, as); len(warnings) > 0 {
		t.Errorf("as the service's own role it warns of %v", warnings)
	}
}

// shownWarnings are those of /v1/status.
func shownWarnings(t testing.TB, s *testservice.Service) []string {
	t.Helper()
	var warnings []string
	for _, w := range s.Do(t, "GET", "/v1/status", nil).Want(t, 200).JSON(t)["warnings"].([]any) {
		warnings = append(warnings, w.(string))
	}
	return warnings
}

func TestASchemaThatDoesNotFitStopsTheStart(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	if _, err := check(t, config(testdb.Blank(t), storage)); !errors.Is(err, migrations.ErrNotMigrated) {
		t.Errorf("on a blank database: %v, want ErrNotMigrated", err)
	}
	db := testdb.Empty(t)
	db.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)`)
	if _, err := check(t, config(db.URL, storage)); err != nil {
		t.Errorf("on a newer schema that is compatible: %v", err)
	}
	db.Exec(t, `UPDATE schema_compatibility SET compatible_from = 999`)
	if _, err := check(t, config(db.URL, storage)); !errors.Is(err, migrations.ErrTooOld) {
		t.Errorf("on a newer schema that is not: %v, want ErrTooOld", err)
	}
}

func TestAStartOnAnotherIdentityBeginsTheNextEpoch(t *testing.T) {
	t.Parallel()
	db, storage := testdb.Empty(t), testbucket.New(t)
	const epoch = `SELECT coalesce(max(epoch), 0) FROM epoch`
	for i, want := range []int{1, 1, 2, 2} {
		if i == 2 {
			db.Exec(t, `VACUUM FULL report`) // another filenode
		}
		if _, err := check(t, config(db.URL, storage)); err != nil {
			t.Fatal(err)
		}
		if got := testdb.Value[int](t, db, epoch); got != want {
			t.Errorf("start %d: epoch %d, want %d", i+1, got, want)
		}
	}
}

func TestWhatCannotBeReadIsAnErrorOfTheConfiguration(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	for name, cfg := range map[string]service.Config{
		"database": config("postgres://[", storage),
		"bucket":   {Database: database.Config{URL: "postgres://127.0.0.1:1/x"}},
	} {
		if s, err := service.Open(context.Background(), cfg); err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
		}
	}
}
