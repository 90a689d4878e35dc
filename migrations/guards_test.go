package migrations_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline/fenceline/internal/testdb"
)

// july fills a database with one report in every state that there is: version 1 superseded, version 2 visible,
// fence 1.1 revoked, lease a7 ended and b9 live, and objects reserved, sealed, condemned and deleted.
func july(t testing.TB) *testdb.DB {
	t.Helper()
	db := testdb.New(t)
	s := db.Pool
	call(t, s, "acquired", `SELECT status FROM acquire('july', 'a7', 'A', 30000)`)
	stage(t, s, 1, "v1.csv")
	publish(t, s, 1, "v1.csv")
	call(t, s, "released", `SELECT status FROM release('july', 'a7')`)
	call(t, s, "acquired", `SELECT status FROM acquire('july', 'b9', 'B', 30000)`)
	call(t, s, "revoked", `SELECT status FROM revoke_lease('july', 1, 1, 'it hangs', 'test')`)
	stage(t, s, 2, "v2.csv")
	publish(t, s, 2, "v2.csv")
	stage(t, s, 2, "sealed.csv")
	for _, object := range []string{"reserved.csv", "condemned.csv", "deleted.csv"} {
		call(t, s, "reserved", `SELECT status FROM reserve('july', 1, 2, $1, '', NULL, NULL, NULL, NULL, 3600000, 86400000, 'test')`, object)
	}
	call(t, s, "reserved", `SELECT status FROM reserve('july', 1, 2, 'parts.csv', '', NULL, NULL, 5, NULL, 3600000, 86400000, 'test', 5242880)`)
	call(t, s, "recorded", `SELECT status FROM record_upload('july', 1, 2, 'parts.csv', 'u1')`)
	call(t, s, "discarded", `SELECT status FROM discard('july', 1, 2, 'condemned.csv', 86400000)`)
	call(t, s, "discarded", `SELECT status FROM discard('july', 1, 2, 'deleted.csv', 86400000)`)
	db.Exec(t, `UPDATE object SET state = 'deleted', deleted_at = fenceline_now() WHERE object_id = 'deleted.csv'`)
	return db
}

// forbidden is a statement that the guards must refuse, and words that the refusal must contain.
type forbidden struct {
	statement string
	words     []string
}

const insertPublication = `INSERT INTO publication (report_id, version, fence_epoch, fence_counter, idempotency_key, request_digest,
	object_epoch, object_counter, object_id, object_key, size, sha256, metadata, published_at)
	SELECT report_id, `

// forbiddenStatements lists what nobody may do to the report of july(), and why not.
func forbiddenStatements() map[string]forbidden {
	return map[string]forbidden{
		"granted counter down":                {`UPDATE report SET granted_counter = 1`, []string{"july", "granted", "down", "1.2"}},
		"granted epoch down":                  {`UPDATE report SET granted_epoch = 0, granted_counter = 9`, []string{"july", "granted", "down"}},
		"accepted down":                       {`UPDATE report SET accepted_counter = 1`, []string{"july", "accepted", "down", "1.2"}},
		"accepted down with a version":        {`UPDATE report SET accepted_counter = 1, version = 3`, []string{"july", "accepted", "down"}},
		"barred down":                         {`UPDATE report SET barred_counter = 0`, []string{"july", "barred", "down", "1.1"}},
		"all fences to nothing":               {`UPDATE report SET granted_epoch = 0, granted_counter = 0, accepted_epoch = 0, accepted_counter = 0, barred_epoch = 0, barred_counter = 0`, []string{"july", "granted", "down"}},
		"version skipped":                     {`UPDATE report SET version = 4`, []string{"july", "version", "up by one"}},
		"version back":                        {`UPDATE report SET version = 1`, []string{"july", "version", "up by one"}},
		"version without publication":         {`UPDATE report SET version = 3`, []string{"july", "no publication of version 3"}},
		"pointer to another object":           {`UPDATE report SET visible_object_id = 'sealed.csv'`, []string{"july", "pointer", "publish"}},
		"pointer to the former object":        {`UPDATE report SET visible_counter = 1, visible_object_id = 'v1.csv'`, []string{"july", "pointer", "publish"}},
		"pointer to nothing":                  {`UPDATE report SET visible_epoch = NULL, visible_counter = NULL, visible_object_id = NULL`, []string{"july", "pointer", "publish"}},
		"pointer and version by hand":         {`UPDATE report SET version = 3, visible_object_id = 'sealed.csv'`, []string{"july", "no publication of version 3"}},
		"another name":                        {`UPDATE report SET report_id = 'august'`, []string{"august", "id may not change"}},
		"another lease under the same fence":  {`UPDATE report SET lease_id = 'c1'`, []string{"july", "lease", "greater fence"}},
		"lease shortened":                     {`UPDATE report SET lease_expires_at = lease_expires_at - interval '1 second'`, []string{"july", "lease", "shortened"}},
		"report that begins with a version":   {`INSERT INTO report (report_id, created_at, version) VALUES ('august', now(), 1)`, []string{"august", "nothing published"}},
		"report that begins with an accepted": {`INSERT INTO report (report_id, created_at, granted_epoch, granted_counter, accepted_epoch, accepted_counter) VALUES ('august', now(), 1, 1, 1, 1)`, []string{"august", "nothing published"}},

		"publication changed":                {`UPDATE publication SET published_by = 'somebody' WHERE version = 1`, []string{"july", "version 1", "never changed"}},
		"publication of another version":     {insertPublication + `9, 1, 2, 'k', '', 1, 2, object_id, key, size, sha256, '{}', now() FROM object WHERE object_id = 'sealed.csv'`, []string{"july", "next version is 3"}},
		"publication under a lower fence":    {insertPublication + `3, 1, 1, 'k', '', 1, 2, object_id, key, size, sha256, '{}', now() FROM object WHERE object_id = 'sealed.csv'`, []string{"july", "1.1", "stale_fence", "accepted 1.2"}},
		"publication under an invented one":  {insertPublication + `3, 1, 3, 'k', '', 1, 2, object_id, key, size, sha256, '{}', now() FROM object WHERE object_id = 'sealed.csv'`, []string{"july", "1.3", "fence_not_granted", "granted 1.2"}},
		"publication of bytes not looked at": {insertPublication + `3, 1, 2, 'k', '', 1, 2, object_id, key, 5, sha256('x'), '{}', now() FROM object WHERE object_id = 'reserved.csv'`, []string{"july", "not sealed"}},
		"publication of other bytes":         {insertPublication + `3, 1, 2, 'k', '', 1, 2, object_id, key, 5, sha256('x'), '{}', now() FROM object WHERE object_id = 'sealed.csv'`, []string{"july", "not sealed with that"}},

		"object that begins sealed": {`INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, reserved_at, upload_until, size, sha256, etag, sealed_at, checked_epoch) VALUES ('july', 1, 2, 'ghost.csv', '', 'sealed', now(), now(), 1, sha256('a'), 'e', now(), 1)`, []string{"july", "ghost.csv", "begins as reserved"}},

		"ended lease revived":      {`UPDATE lease SET ended_at = NULL, end_reason = NULL WHERE lease_id = 'a7'`, []string{"july", "a7", "ended"}},
		"reason of an end changed": {`UPDATE lease SET end_reason = 'revoked' WHERE lease_id = 'a7'`, []string{"july", "a7", "ended"}},
		"fence of a lease changed": {`UPDATE lease SET fence_counter = 7 WHERE lease_id = 'b9'`, []string{"july", "b9", "fence"}},
		"holder changed":           {`UPDATE lease SET holder = 'C' WHERE lease_id = 'b9'`, []string{"july", "b9", "holder"}},

		"object revived to sealed":    {`UPDATE object SET state = 'sealed', condemned_at = NULL, condemned_reason = NULL, purge_after = NULL WHERE object_id = 'condemned.csv'`, []string{"july", "condemned.csv", "from condemned to sealed"}},
		"object revived to reserved":  {`UPDATE object SET state = 'reserved', condemned_at = NULL, condemned_reason = NULL, purge_after = NULL, eligible_at = now() WHERE object_id = 'condemned.csv'`, []string{"july", "condemned.csv", "from condemned to reserved"}},
		"deleted object revived":      {`UPDATE object SET state = 'condemned', deleted_at = NULL WHERE object_id = 'deleted.csv'`, []string{"july", "deleted.csv", "from deleted to condemned"}},
		"sealed object reopened":      {`UPDATE object SET state = 'reserved', size = NULL, sha256 = NULL, etag = NULL, sealed_at = NULL, checked_epoch = NULL WHERE object_id = 'sealed.csv'`, []string{"july", "sealed.csv", "sealed"}},
		"reserved object deleted":     {`UPDATE object SET state = 'deleted' WHERE object_id = 'reserved.csv'`, []string{"july", "reserved.csv", "from reserved to deleted"}},
		"digest changed":              {`UPDATE object SET sha256 = sha256('x') WHERE object_id = 'sealed.csv'`, []string{"july", "sealed.csv", "bytes may not change"}},
		"size changed":                {`UPDATE object SET size = 6 WHERE object_id = 'v1.csv'`, []string{"july", "v1.csv", "bytes may not change"}},
		"version id changed":          {`UPDATE object SET version_id = 'other' WHERE object_id = 'v2.csv'`, []string{"july", "v2.csv", "bytes may not change"}},
		"declaration changed":         {`UPDATE object SET declared_size = 9 WHERE object_id = 'reserved.csv'`, []string{"july", "reserved.csv", "declaration"}},
		"part size changed":           {`UPDATE object SET part_size = 5242881 WHERE object_id = 'parts.csv'`, []string{"july", "parts.csv", "declaration"}},
		"part size taken away":        {`UPDATE object SET part_size = NULL WHERE object_id = 'parts.csv'`, []string{"july", "parts.csv", "declaration"}},
		"upload exchanged":            {`UPDATE object SET upload_id = 'u2' WHERE object_id = 'parts.csv'`, []string{"july", "parts.csv", "exchanged"}},
		"upload forgotten":            {`UPDATE object SET upload_id = NULL WHERE object_id = 'parts.csv'`, []string{"july", "parts.csv", "exchanged"}},
		"key changed":                 {`UPDATE object SET prefix = 'other/' WHERE object_id = 'reserved.csv'`, []string{"july", "reserved.csv", "name"}},
		"visible object condemned":    {`UPDATE object SET state = 'condemned', condemned_at = now(), condemned_reason = 'superseded', purge_after = now() WHERE object_id = 'v2.csv'`, []string{"july", "v2.csv", "visible"}},
		"visible object given a term": {`UPDATE object SET eligible_at = now() WHERE object_id = 'v2.csv'`, []string{"july", "v2.csv", "visible"}},

		"report deleted":      {`DELETE FROM report`, []string{"report", "july", "fence would be forgotten"}},
		"publication deleted": {`DELETE FROM publication WHERE version = 1`, []string{"publication", "july", "kept for ever"}},
		"ended lease deleted": {`DELETE FROM lease WHERE lease_id = 'a7'`, []string{"lease", "july", "granted again"}},
		"live lease deleted":  {`DELETE FROM lease WHERE lease_id = 'b9'`, []string{"lease", "july", "granted again"}},
		"object deleted":      {`DELETE FROM object WHERE object_id = 'sealed.csv'`, []string{"object", "july", "bucket"}},
		"tombstone deleted":   {`DELETE FROM object WHERE object_id = 'deleted.csv'`, []string{"object", "july"}},

		"reports truncated":      {`TRUNCATE report CASCADE`, []string{"report", "truncated", "fences"}},
		"publications truncated": {`TRUNCATE publication`, []string{"publication", "truncated"}},
		"leases truncated":       {`TRUNCATE lease`, []string{"lease", "truncated"}},
		"objects truncated":      {`TRUNCATE object`, []string{"object", "truncated"}},
		"epochs truncated":       {`TRUNCATE epoch`, []string{"epoch", "truncated"}},

		"epoch changed":        {`UPDATE epoch SET epoch = 7`, []string{"epoch 1", "never changed"}},
		"identity changed":     {`UPDATE epoch SET report_filenode = 1`, []string{"epoch 1", "never changed"}},
		"epoch deleted":        {`DELETE FROM epoch`, []string{"epoch 1", "must stay known"}},
		"epoch again":          {`INSERT INTO epoch SELECT * FROM epoch`, []string{"epoch 1", "go back"}},
		"epoch below the last": {`INSERT INTO epoch SELECT 1, 2, began_at, reason, system_identifier, timeline, postmaster_started_at, database_oid, report_filenode FROM epoch`, []string{"epoch 1", "go back"}},
	}
}

func TestWhatWouldBreakAPromiseIsRefusedByTheDatabaseWhoeverAsks(t *testing.T) {
	t.Parallel()
	db := july(t)
	statements := forbiddenStatements()
	for name, role := range map[string]string{
		"as the owner": `SET session_replication_role = origin`,
		// Ordinary triggers do not fire for a replica: these are ENABLE ALWAYS.
		"as a replica": `SET session_replication_role = replica`,
	} {
		conn, err := db.Owner.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		for what, f := range statements {
			refuses(t, conn.Conn(), name+": "+what, f)
		}
		if _, err := conn.Exec(t.Context(), `RESET session_replication_role`); err != nil {
			t.Fatal(err)
		}
		conn.Release()
	}
}

// refuses runs the statement and rolls back, and reports unless it was refused as it must be.
func refuses(t *testing.T, conn *pgx.Conn, name string, f forbidden) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}()
	tag, err := tx.Exec(t.Context(), f.statement)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		t.Errorf("%s: not refused: %v (%v)", name, err, tag)
		return
	}
	if !strings.HasPrefix(refused.Code, "23") {
		t.Errorf("%s: SQLSTATE %s is not of class 23: %s", name, refused.Code, refused.Message)
	}
	for _, word := range append([]string{"fenceline:"}, f.words...) {
		if !strings.Contains(refused.Message, word) {
			t.Errorf("%s: the message does not say %q: %s", name, word, refused.Message)
		}
	}
}

func TestWhatKeepsEveryPromiseIsLeftToTheOwner(t *testing.T) {
	t.Parallel()
	db := july(t)
	for _, statement := range []string{
		`UPDATE report SET granted_counter = 9223372036854775807`,
		`UPDATE report SET barred_counter = 2`,
		`UPDATE report SET lease_expires_at = lease_expires_at + interval '1 second'`,
		`UPDATE report SET lease_id = NULL, lease_holder = NULL, lease_expires_at = NULL`,
		`UPDATE report SET fencing = 'live', publishes_per_grant = 'one'`,
		`UPDATE object SET eligible_at = now() WHERE object_id = 'v1.csv'`,
		`UPDATE lease SET ended_at = now(), end_reason = 'revoked' WHERE lease_id = 'b9'`,
	} {
		db.Exec(t, statement)
	}
}

func TestAFloorIsNeverLoweredAgain(t *testing.T) {
	t.Parallel()
	db := july(t)
	const next = `INSERT INTO epoch SELECT $1, $2, began_at, reason, system_identifier, timeline,
		postmaster_started_at, database_oid, report_filenode FROM epoch ORDER BY epoch DESC LIMIT 1`
	db.Exec(t, next, 2, 2)
	conn, err := db.Owner.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range []string{
		strings.NewReplacer("$1", "3", "$2", "1").Replace(next),
		strings.NewReplacer("$1", "2", "$2", "2").Replace(next),
		strings.NewReplacer("$1", "1", "$2", "1").Replace(next),
	} {
		refuses(t, conn.Conn(), statement, forbidden{statement, []string{"go back"}})
	}
	db.Exec(t, next, 3, 2)
}

func TestARevokedFencePublishesNothingEvenByHand(t *testing.T) {
	t.Parallel()
	db := july(t)
	db.Exec(t, `UPDATE report SET barred_counter = 2`)
	conn, err := db.Owner.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	refuses(t, conn.Conn(), "under the barred fence", forbidden{
		insertPublication + `3, 1, 2, 'k', '', 1, 2, object_id, key, size, sha256, '{}', now() FROM object WHERE object_id = 'sealed.csv'`,
		[]string{"july", "barred 1.2"},
	})
}

func TestEveryGuardFiresForReplicasToo(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	lax := column[string](t, pool, `
		SELECT format('%s on %s', tgname, tgrelid::regclass)
		FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
		WHERE NOT tgisinternal AND c.relnamespace = 'public'::regnamespace AND tgenabled <> 'A'`)
	if len(lax) > 0 {
		t.Errorf("not ENABLE ALWAYS: %v", lax)
	}
	// Every table whose rows carry a promise has a guard for each way of changing it.
	missing := column[string](t, pool, `
		SELECT format('%s of %s', event.name, guarded)
		FROM unnest(ARRAY['report', 'publication', 'lease', 'object', 'epoch']) AS guarded,
		     (VALUES ('UPDATE', 16), ('DELETE', 8), ('TRUNCATE', 32)) AS event (name, bit)
		WHERE NOT EXISTS (
			SELECT FROM pg_trigger
			WHERE tgrelid = guarded::regclass AND NOT tgisinternal AND tgtype & event.bit <> 0 AND tgtype & 2 <> 0)`)
	if len(missing) > 0 {
		t.Errorf("unguarded: %v", missing)
	}
}

// A grant that is still the newest after its object was collected and forgotten must not get the object's name a
// second time: a version still goes by it.
func TestANameThatAVersionGoesByIsNeverReservedAgain(t *testing.T) {
	t.Parallel()
	db := july(t)
	const again = `SELECT status FROM reserve('july', 1, 2, 'v2.csv', '', NULL, NULL, NULL, NULL, 3600000, 86400000, 'test')`
	call(t, db.Pool, "object_id_reused", again)

	stage(t, db.Pool, 2, "v3.csv")
	call(t, db.Pool, "applied", `SELECT status FROM publish(jsonb_build_array(jsonb_build_object('report', 'july', 'epoch', 1,
		'counter', 2, 'object_id', 'v3.csv', 'idempotency_key', 'v3', 'expected_version', 2)))`)
	db.Exec(t, `UPDATE object SET state = 'condemned', condemned_at = fenceline_now(), condemned_reason = 'superseded',
		eligible_at = NULL, purge_after = fenceline_now() WHERE object_id = 'v2.csv'`)
	db.Exec(t, `UPDATE object SET state = 'deleted', deleted_at = fenceline_now() WHERE object_id = 'v2.csv'`)
	db.Exec(t, `DO $$ BEGIN
		PERFORM set_config('fenceline.forgetting', 'on', true);
		DELETE FROM object WHERE object_id = 'v2.csv';
	END $$`)
	call(t, db.Pool, "object_exists", again)
	call(t, db.Pool, "object_gone", `SELECT status FROM publish(jsonb_build_array(jsonb_build_object('report', 'july', 'epoch', 1,
		'counter', 2, 'from_version', 2, 'idempotency_key', 'back', 'expected_version', 3)))`)
}

func TestAPublicationThatItsReportDoesNotShowIsRefusedAtTheCommit(t *testing.T) {
	t.Parallel()
	db := july(t)
	_, err := db.Owner.Exec(t.Context(), insertPublication+`3, 1, 2, 'k', '', 1, 2, object_id, key, size, sha256, '{}', now()
		FROM object WHERE object_id = 'sealed.csv'`)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, "does not show") {
		t.Errorf("the publication alone: %v, want it refused", err)
	}
}
