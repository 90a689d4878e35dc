package migrations_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/migrations"
)

// up migrates, and fails the test where it fails.
func up(t testing.TB, url string) {
	t.Helper()
	version, err := migrations.Up(t.Context(), url)
	if err != nil {
		t.Fatalf("up: %v", err)
	}
	if version != migrations.Newest() {
		t.Fatalf("up ended at %d, want %d", version, migrations.Newest())
	}
}

// state reads how far a schema is.
func state(t testing.TB, pool *pgxpool.Pool) migrations.State {
	t.Helper()
	s, err := migrations.ReadState(t.Context(), pool)
	if err != nil {
		t.Fatalf("read the state: %v", err)
	}
	return s
}

// everything lists the tables, functions, triggers, types and sequences of a database.
func everything(t testing.TB, pool *pgxpool.Pool) []string {
	t.Helper()
	return column[string](t, pool, `
		SELECT format('%s %s', relkind, oid::regclass) FROM pg_class WHERE relnamespace = 'public'::regnamespace
		UNION ALL
		SELECT format('function %s', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
		UNION ALL
		SELECT format('trigger %s on %s', tgname, tgrelid::regclass) FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL
		SELECT format('type %s', oid::regtype) FROM pg_type WHERE typnamespace = 'public'::regnamespace
		ORDER BY 1`)
}

func TestUpIsRepeatable(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	pool := open(t, url)
	if s := state(t, pool); s != (migrations.State{}) || !errors.Is(s.Check(), migrations.ErrNotMigrated) {
		t.Errorf("a blank database is at %+v: %v", s, s.Check())
	}
	up(t, url)
	once := everything(t, pool)
	if s := state(t, pool); s.Applied != migrations.Newest() || s.Check() != nil {
		t.Errorf("after up the state is %+v: %v", s, s.Check())
	}
	up(t, url)
	if diff := cmp.Diff(once, everything(t, pool)); diff != "" {
		t.Errorf("a second up changed what there is:\n%s", diff)
	}
}

func TestUpReplacesTheFunctionsOfAnotherRelease(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	up(t, url)
	pool := open(t, url)
	before := everything(t, pool)
	const body = `SELECT prosrc FROM pg_proc WHERE proname IN ('release', 'guard_report') ORDER BY proname`
	bodies := column[string](t, pool, body)
	if _, err := pool.Exec(t.Context(), `
		DROP FUNCTION release, renew;
		CREATE FUNCTION release(p_report text, p_lease text) RETURNS TABLE (status text) LANGUAGE sql AS 'SELECT NULL::text'; -- another answer
		CREATE FUNCTION renew(p_report text, p_lease text, p_ttl interval) RETURNS void LANGUAGE sql AS ''; -- other arguments
		CREATE OR REPLACE FUNCTION guard_report() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		ALTER TABLE report DISABLE TRIGGER guard_write;
		UPDATE schema_compatibility SET functions_digest = 'of another release'`); err != nil {
		t.Fatal(err)
	}
	up(t, url)
	if diff := cmp.Diff(before, everything(t, pool)); diff != "" {
		t.Errorf("before (-) and after (+):\n%s", diff)
	}
	if diff := cmp.Diff(bodies, column[string](t, pool, body)); diff != "" {
		t.Errorf("before (-) and after (+):\n%s", diff)
	}
	if enabled := column[string](t, pool, `SELECT tgenabled::text FROM pg_trigger WHERE tgrelid = 'report'::regclass AND tgname = 'guard_write'`); !slices.Equal(enabled, []string{"A"}) {
		t.Errorf("guard_write is enabled as %v, want A", enabled)
	}
}

func TestDownRefusesToForgetReportsUnlessItIsToldTo(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	pool := open(t, url)
	blank := everything(t, pool)
	up(t, url)
	full := everything(t, pool)
	if _, _, err := lease.New(pool).VerifyEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	call(t, pool, "acquired", `SELECT status FROM acquire('july', 'a7', 'A', 30000)`)

	if err := migrations.Down(t.Context(), url, false); !errors.Is(err, migrations.ErrReportsExist) {
		t.Errorf("down: %v, want ErrReportsExist", err)
	}
	if diff := cmp.Diff(full, everything(t, pool)); diff != "" {
		t.Errorf("a refused down left:\n%s", diff)
	}
	call(t, pool, "replayed", `SELECT status FROM acquire('july', 'a7', 'A', 30000)`)

	if err := migrations.Down(t.Context(), url, true); err != nil {
		t.Fatalf("down --destroy: %v", err)
	}
	if left := everything(t, pool); !slices.Equal(left, blank) {
		t.Errorf("down --destroy left %v", left)
	}
	if s := state(t, pool); !errors.Is(s.Check(), migrations.ErrNotMigrated) {
		t.Errorf("after down the state is %+v", s)
	}
	if err := migrations.Down(t.Context(), url, false); err != nil {
		t.Errorf("down of what is gone: %v", err)
	}
	up(t, url)
	if diff := cmp.Diff(full, everything(t, pool)); diff != "" {
		t.Errorf("up (-) and up after down (+) differ:\n%s", diff)
	}
}

func TestDownNeedsNoPermissionWhereThereIsNoReport(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	up(t, url)
	if err := migrations.Down(t.Context(), url, false); err != nil {
		t.Errorf("down: %v", err)
	}
}

func TestFiveMigrateAnEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	var (
		replicas sync.WaitGroup
		start    = make(chan struct{})
	)
	for range 5 {
		replicas.Go(func() {
			<-start
			if _, err := migrations.Up(t.Context(), url); err != nil {
				t.Errorf("up: %v", err)
			}
		})
	}
	close(start)
	replicas.Wait()
	pool := open(t, url)
	if s := state(t, pool); s.Check() != nil {
		t.Errorf("the state is %+v: %v", s, s.Check())
	}
	if applied := column[int](t, pool, `SELECT count(*)::integer FROM goose_db_version WHERE version_id > 0`); applied[0] != int(migrations.Newest()) {
		t.Errorf("%d migrations were recorded, want %d", applied[0], migrations.Newest())
	}
}

func TestAMigrationBesideARunningServiceEndsInNoDeadlock(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	db.Exec(t, `UPDATE schema_compatibility SET functions_digest = 'of another release'`)
	// The migration is stopped between two tables; then a worker creates a report.
	letGo := db.Hold(t, `LOCK TABLE publication IN SHARE MODE`)
	defer letGo()
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := migrations.Up(t.Context(), db.OwnerURL); err != nil {
			t.Errorf("up: %v", err)
		}
	})
	db.AwaitWaiting(t, 1)
	both.Go(func() {
		if _, err := lease.New(db.Pool).Acquire(t.Context(), lease.Request{Report: "july", Lease: "a7", Holder: "A", TTL: time.Minute}); err != nil {
			t.Errorf("acquire: %v", err)
		}
	})
	db.AwaitWaiting(t, 2)
	letGo()
	both.Wait()
}

func TestAProgramWorksWithANewerSchemaAsLongAsThatIsCompatible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		statement string
		want      error
	}{
		{"as it is", `SELECT`, nil},
		{"newer and compatible", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)`, nil},
		{"newer and not compatible", `
			INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true);
			UPDATE schema_compatibility SET compatible_from = 998`, migrations.ErrTooOld},
		{"older", `DELETE FROM goose_db_version WHERE version_id > 0`, migrations.ErrNotMigrated},
		{"of another tool", `DROP TABLE goose_db_version`, migrations.ErrNotMigrated},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool := migrated(t)
			if _, err := pool.Exec(t.Context(), c.statement); err != nil {
				t.Fatal(err)
			}
			if err := state(t, pool).Check(); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestAProgramChangesNothingOfANewerSchema(t *testing.T) {
	t.Parallel()
	url := testdb.Blank(t)
	up(t, url)
	pool := open(t, url)
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true);
		CREATE OR REPLACE FUNCTION milliseconds_between(p_from timestamptz, p_to timestamptz) RETURNS bigint LANGUAGE sql AS 'SELECT 999::bigint'`); err != nil {
		t.Fatal(err)
	}
	before := everything(t, pool)
	if _, err := migrations.Up(t.Context(), url); !errors.Is(err, migrations.ErrTooNew) {
		t.Errorf("up: %v, want ErrTooNew", err)
	}
	for _, destroy := range []bool{false, true} {
		if err := migrations.Down(t.Context(), url, destroy); !errors.Is(err, migrations.ErrTooNew) {
			t.Errorf("down: %v, want ErrTooNew", err)
		}
	}
	if diff := cmp.Diff(before, everything(t, pool)); diff != "" {
		t.Errorf("before (-) and after (+):\n%s", diff)
	}
	if newer := column[int64](t, pool, `SELECT milliseconds_between(now(), now())`); newer[0] != 999 {
		t.Error("the newer schema's function was replaced by the older one")
	}
}

// ownedByAnOrdinaryRole makes a database that belongs to a role which may do nothing but log in, and returns the
// role's URL of it and the service's. The role stays for as long as the test run's server.
func ownedByAnOrdinaryRole(t testing.TB) (ownerURL, serviceURL string) {
	t.Helper()
	raw := testdb.Blank(t)
	admin := open(t, raw)
	role := "o_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	for _, statement := range []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE", role),
		fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", name, role),
	} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	u.User = url.User(role)
	ownerURL = u.String()
	u.User = url.User("fenceline_service")
	return ownerURL, u.String()
}

func TestAnOwnerWhoIsNoSuperuserMigratesAndAllWorks(t *testing.T) {
	t.Parallel()
	testdb.New(t) // so that fenceline_service exists and may log in
	ownerURL, serviceURL := ownedByAnOrdinaryRole(t)
	up(t, ownerURL)
	up(t, ownerURL)
	service := testdb.Open(t, database.Config{URL: serviceURL, Pool: 2})
	if _, _, err := lease.New(service).VerifyEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if writes, err := database.MayWrite(t.Context(), service); err != nil || writes {
		t.Errorf("the service may write: %v, %v", writes, err)
	}
	call(t, service, "acquired", `SELECT status FROM acquire('july', 'a7', 'A', 30000)`)
	stage(t, service, 1, "v1.csv")
	publish(t, service, 1, "v1.csv")
	call(t, service, "reserved", `SELECT status FROM reserve('july', 1, 1, 'x', '', NULL, NULL, NULL, NULL, 1, 1, 'test')`)
	call(t, service, "discarded", `SELECT status FROM discard('july', 1, 1, 'x', 0)`)
	call(t, service, "started", `SELECT status FROM begin_run(false, 'test', 30000, 0.2, 20, 1000)`)
	call(t, service, "forgotten", `SELECT status FROM forget((SELECT run_id FROM gc_run), 10, 1000, 1000, 1000)`)
	owner := open(t, ownerURL)
	call(t, owner, "created", `SELECT status FROM create_key('k1', sha256('k1'), 'test', 'worker', '*', NULL)`)
	if _, err := owner.Exec(t.Context(), `UPDATE report SET granted_counter = 0`); err == nil {
		t.Error("the guards let the owner lower a fence")
	}
	if err := migrations.Down(t.Context(), ownerURL, true); err != nil {
		t.Errorf("down --destroy: %v", err)
	}
}
