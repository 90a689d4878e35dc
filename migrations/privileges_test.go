package migrations_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/testdb"
)

// permissionDenied is PostgreSQL's code for what a role may not do.
const permissionDenied = "42501"

func TestTheServicesRoleWritesToNoTable(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	// A write of each kind to each table there is, the migration tool's own included.
	statements := column[string](t, db.Owner, `
		SELECT unnest(ARRAY[
			format('INSERT INTO %1$s DEFAULT VALUES', oid::regclass),
			format('UPDATE %1$s SET %2$I = %2$I', oid::regclass, (
				SELECT attname FROM pg_attribute
				WHERE attrelid = oid AND attnum > 0 AND attidentity = '' AND attgenerated = '' LIMIT 1)),
			format('DELETE FROM %1$s', oid::regclass),
			format('TRUNCATE %1$s CASCADE', oid::regclass),
			format('ALTER TABLE %1$s DISABLE TRIGGER ALL', oid::regclass),
			format('DROP TABLE %1$s CASCADE', oid::regclass)])
		FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`)
	if len(statements) < 6*10 {
		t.Fatalf("only %d statements: the tables were not found", len(statements))
	}
	statements = append(statements,
		`CREATE TABLE public.mine (n integer)`,
		`CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'`,
		`SET session_replication_role = replica`)
	for _, statement := range statements {
		_, err := db.Pool.Exec(t.Context(), statement)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != permissionDenied {
			t.Errorf("%s: %v, want permission denied", statement, err)
		}
	}
}

func TestTheServicesRoleOnlyReadsTables(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	granted := column[string](t, pool, `
		SELECT DISTINCT format('%s on %s', acl.privilege_type, c.oid::regclass)
		FROM pg_class c
		CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) acl
		WHERE c.relnamespace = 'public'::regnamespace AND acl.grantee IN (0, 'fenceline_service'::regrole)
		  AND NOT (acl.grantee = 'fenceline_service'::regrole AND acl.privilege_type = 'SELECT' AND c.relkind = 'r')
		UNION ALL
		SELECT format('%s on %s.%s', acl.privilege_type, attrelid::regclass, attname)
		FROM pg_attribute CROSS JOIN LATERAL aclexplode(attacl) acl
		JOIN pg_class c ON c.oid = attrelid
		WHERE c.relnamespace = 'public'::regnamespace`)
	if len(granted) > 0 {
		t.Errorf("granted to the service's role or to PUBLIC: %v", granted)
	}
	if hidden := column[string](t, pool, `
		SELECT oid::regclass::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
		  AND NOT has_table_privilege('fenceline_service', oid, 'SELECT')`); len(hidden) > 0 {
		t.Errorf("the service's role cannot read %v", hidden)
	}
}

// function is one of the schema's, as the database knows it.
type function struct {
	Name       string
	Definer    bool     // SECURITY DEFINER
	Executable bool     // by the service's role
	Public     bool     // executable by PUBLIC
	Settings   []string // what it pins
	Body       string
	Trigger    bool
}

// functions lists every function of the schema.
func functions(t testing.TB, pool *pgxpool.Pool) []function {
	t.Helper()
	const query = `
		SELECT proname AS name, prosecdef AS definer, proconfig AS settings, prosrc AS body,
		       has_function_privilege('fenceline_service', p.oid, 'EXECUTE') AS executable,
		       EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0) AS public,
		       prorettype = 'trigger'::regtype AS trigger
		FROM pg_proc p
		WHERE pronamespace = 'public'::regnamespace
		ORDER BY proname`
	rows, err := pool.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[function])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEveryFunctionHasItsFileAndEveryFileItsFunction(t *testing.T) {
	t.Parallel()
	var inDatabase, inFiles []string
	for _, f := range functions(t, migrated(t)) {
		inDatabase = append(inDatabase, f.Name)
	}
	paths, err := filepath.Glob("functions/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		inFiles = append(inFiles, strings.TrimSuffix(filepath.Base(path), ".sql"))
	}
	slices.Sort(inDatabase)
	slices.Sort(inFiles)
	if diff := cmp.Diff(inFiles, inDatabase); diff != "" {
		t.Errorf("files (-) and functions (+) differ:\n%s", diff)
	}
}

func TestTheServiceMayExecuteWhatItCallsAndNothingElse(t *testing.T) {
	t.Parallel()
	called := calledByGo(t)
	for _, owners := range []string{"create_key", "copy_key", "revoke_key"} {
		called[owners] = false
	}
	internal := map[string]bool{
		"enter": false, "enter_run": false, "judge_fence": false, "move_pointer": false, "end_lease": false, "publish_one": false,
		"condemn_objects": false, "note_batch": false, "tally": false, "lock_report": false, "find_object": false, "note_forgotten": false, "judge_due": false, "database_identity": false,
		"create_key": false, "copy_key": false, "revoke_key": false, // of the owner's command line
	}
	public := map[string]bool{
		"acquire": false, "renew": false, "release": false, "revoke_lease": false, "reserve": false, "record_upload": false, "seal": false, "discard": false,
		"publish": false, "condemn": false, "record_purge": false, "forget": false, "begin_run": false, "end_run": false, "approve_run": false,
		"continue_run": false, "touch_key": false, "verify_epoch": false, "epoch_verified": false,
	}
	for _, f := range functions(t, migrated(t)) {
		if f.Public {
			t.Errorf("%s may be executed by PUBLIC", f.Name)
		}
		if f.Executable != called[f.Name] {
			t.Errorf("%s: the service may execute it: %v; the service's code calls it: %v", f.Name, f.Executable, called[f.Name])
		}
		if _, is := internal[f.Name]; is {
			internal[f.Name] = !f.Executable
		}
		if _, is := public[f.Name]; is {
			public[f.Name] = f.Executable && f.Definer
		}
	}
	for name, right := range internal {
		if !right {
			t.Errorf("the internal function %s is missing, or the service may execute it", name)
		}
	}
	for name, right := range public {
		if !right {
			t.Errorf("the function %s is missing, or the service may not execute it as its owner", name)
		}
	}
}

// calledByGo lists the functions whose names the product's Go files call in SQL.
func calledByGo(t testing.TB) map[string]bool {
	t.Helper()
	call := regexp.MustCompile(`\b([a-z_]+)\(`)
	called := map[string]bool{}
	for _, folder := range []string{"../lease", "../staging", "../catalog", "../gc", "../api", "../internal/database", "../internal/verify"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, sql := range regexp.MustCompile("(?s)`[^`]*`").FindAllString(string(text), -1) {
				for _, match := range call.FindAllStringSubmatch(sql, -1) {
					called[match[1]] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return called
}

func TestAFunctionActsAsItsOwnerOnlyWhereTheServiceCallsIt(t *testing.T) {
	t.Parallel()
	for _, f := range functions(t, migrated(t)) {
		if f.Definer && !f.Executable {
			t.Errorf("%s is SECURITY DEFINER, but the service may not call it", f.Name)
		}
	}
}

func TestWhatTouchesTablesPinsItsSearchPath(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	tables := column[string](t, pool, `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`)
	touches := regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE)\s+(` + strings.Join(tables, "|") + `)\b`)
	for _, f := range functions(t, pool) {
		// The temporary schema last, and said so: otherwise it is searched first.
		pinned := slices.Contains(f.Settings, "search_path=public, pg_temp")
		if (f.Definer || f.Trigger || touches.MatchString(f.Body)) && !pinned {
			t.Errorf("%s does not pin its search path: %v", f.Name, f.Settings)
		}
		if f.Executable && !f.Definer && touches.MatchString(f.Body) {
			t.Errorf("%s touches tables with the caller's rights", f.Name)
		}
	}
}

func TestATemporaryTableOfTheServicesRoleFoolsNoFunction(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range []string{
		`CREATE TEMPORARY TABLE report (LIKE public.report INCLUDING ALL)`,
		`CREATE TEMPORARY TABLE lease (LIKE public.lease INCLUDING ALL)`,
		`CREATE TEMPORARY TABLE object (LIKE public.object INCLUDING ALL)`,
		`CREATE TEMPORARY TABLE publication (LIKE public.publication INCLUDING ALL)`,
		`CREATE TEMPORARY TABLE epoch (LIKE public.epoch INCLUDING ALL)`,
		`INSERT INTO pg_temp.report (report_id, created_at, granted_epoch, granted_counter) VALUES ('july', now(), 7, 7)`,
		`INSERT INTO pg_temp.epoch SELECT 9, 9, began_at, reason, system_identifier, timeline, postmaster_started_at, database_oid, report_filenode FROM public.epoch`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	call(t, conn, "acquired", `SELECT status FROM acquire('july', 'a7', 'A', 30000)`)
	call(t, conn, "acquired 1.1", `SELECT format('acquired %s.%s', granted_epoch, granted_counter) FROM public.report`)
	call(t, conn, "renewed", `SELECT status FROM renew('july', 'a7', 60000)`)
	call(t, conn, "fence_not_granted", `SELECT status FROM reserve('july', 7, 7, 'x', '', NULL, NULL, NULL, NULL, 3600000, 86400000, 'test')`)
	stage(t, conn, 1, "v1.csv")
	publish(t, conn, 1, "v1.csv")
	call(t, conn, "reserved", `SELECT status FROM reserve('july', 1, 1, 'other.csv', '', NULL, NULL, NULL, NULL, 3600000, 86400000, 'test')`)
	call(t, conn, "discarded", `SELECT status FROM discard('july', 1, 1, 'other.csv', 86400000)`)
	call(t, conn, "revoked", `SELECT status FROM revoke_lease('july', NULL, NULL, 'test', 'test')`)
	call(t, conn, "lease_lost", `SELECT status FROM release('july', 'a7')`)
	call(t, conn, "verified", `SELECT status FROM verify_epoch()`)
	call(t, conn, "1 version of july", `SELECT format('%s version of %s', version, report_id) FROM public.report`)
	call(t, conn, "0", `SELECT count(*)::text FROM (SELECT FROM pg_temp.lease UNION ALL SELECT FROM pg_temp.object UNION ALL SELECT FROM pg_temp.publication) written`)
}
