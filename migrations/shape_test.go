package migrations_test

import "testing"

func TestIdsAndKeysCompareByByte(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	// Storages list in byte order, and cursors and prefixes are ranges in the same order.
	const ids = `
		FROM pg_attribute a
		JOIN pg_class c ON c.oid = attrelid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND attnum > 0 AND NOT attisdropped
		  AND atttypid IN ('text'::regtype, 'varchar'::regtype)
		  AND (attname ~ '(^|_)(id|key)$' OR attname IN ('prefix', 'pattern'))`
	if all := column[int](t, pool, `SELECT count(*)::integer `+ids); all[0] < 15 {
		t.Fatalf("only %d ids and keys were found", all[0])
	}
	if wrong := column[string](t, pool, `SELECT format('%s.%s', attrelid::regclass, attname) `+ids+` AND attcollation <> '"C"'::regcollation`); len(wrong) > 0 {
		t.Errorf(`not COLLATE "C": %v`, wrong)
	}
}

func TestWhatGrowsWithUseCanBeDistributedByReport(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	const unique = `
		FROM pg_index
		WHERE indisunique AND indrelid IN ('report'::regclass, 'lease'::regclass, 'publication'::regclass, 'object'::regclass)`
	if all := column[int](t, pool, `SELECT count(*)::integer `+unique); all[0] < 6 {
		t.Fatalf("only %d unique indexes were found", all[0])
	}
	if wrong := column[string](t, pool, `
		SELECT indexrelid::regclass::text `+unique+`
		AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey) AND attname = 'report_id')`); len(wrong) > 0 {
		t.Errorf("unique without the report's id: %v", wrong)
	}
	// And every table of these has a primary key.
	if wrong := column[string](t, pool, `
		SELECT relname FROM pg_class c
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
		  AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)`); len(wrong) > 0 {
		t.Errorf("without a primary key: %v", wrong)
	}
}

func TestEveryMomentHasItsZone(t *testing.T) {
	t.Parallel()
	// goose's own table is as goose makes it.
	if wrong := column[string](t, migrated(t), `
		SELECT format('%s.%s', attrelid::regclass, attname)
		FROM pg_attribute
		JOIN pg_class c ON c.oid = attrelid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND relname <> 'goose_db_version' AND attnum > 0
		  AND (atttypid IN ('timestamp'::regtype, 'time'::regtype, 'timetz'::regtype, 'date'::regtype)
		       OR attname ~ '_(at|until|after)$' AND atttypid <> 'timestamptz'::regtype)`); len(wrong) > 0 {
		t.Errorf("not timestamptz: %v", wrong)
	}
}
