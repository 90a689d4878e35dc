package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/testdb"
)

// lastUse is when the only key was last used; the zero time is never.
func (b keyBundle) lastUse() time.Time {
	b.t.Helper()
	listed := b.list()
	if len(listed) != 1 {
		b.t.Fatalf("%d keys", len(listed))
	}
	if listed[0].LastUsedAt == nil {
		return time.Time{}
	}
	return *listed[0].LastUsedAt
}

// countNotes has the database count what is written to the keys from now on.
func (b keyBundle) countNotes() (count func() int) {
	b.t.Helper()
	b.db.Exec(b.t, `
		CREATE TABLE note ();
		CREATE FUNCTION count_note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO note DEFAULT VALUES; RETURN NULL; END';
		CREATE TRIGGER count_note AFTER UPDATE ON api_key FOR EACH ROW EXECUTE FUNCTION count_note()`)
	return func() int { return int(testdb.Value[int64](b.t, b.db, "SELECT count(*) FROM note")) }
}

func TestAKeyRemembersWhenItWasLastUsedToTheMinute(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	key, secret := b.create(nightRun)
	if got := b.lastUse(); !got.IsZero() {
		t.Errorf("a new key was used at %s", got)
	}
	b.wantOpen("another secret", "fl_"+key.ID+"_"+strings.Repeat("a", 32), false)
	if got := b.lastUse(); !got.IsZero() {
		t.Errorf("a wrong secret counts as a use at %s", got)
	}

	b.wantOpen("first", secret, true)
	first := b.lastUse()
	if first.Before(key.CreatedAt) {
		t.Fatalf("used at %s, made at %s", first, key.CreatedAt)
	}
	b.wantOpen("within the minute", secret, true)
	if got := b.lastUse(); !got.Equal(first) {
		t.Errorf("noted again, at %s after %s", got, first)
	}
	b.db.Advance(t, time.Minute)
	b.wantOpen("a minute later", secret, true)
	if got := b.lastUse(); got.Sub(first) < time.Minute {
		t.Errorf("a minute after %s noted is %s", first, got)
	}
}

func TestManyUsesAtOnceAreNotedOnce(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	_, secret := b.create(nightRun)
	notes := b.countNotes()
	for minute := range 3 {
		var uses sync.WaitGroup
		for range 40 {
			uses.Go(func() { b.wantOpen("at once", secret, true) })
		}
		uses.Wait()
		if got := notes(); got != minute+1 {
			t.Errorf("%d notes in %d minutes", got, minute+1)
		}
		b.db.Advance(t, time.Minute)
	}
}

func TestAKeyWhoseRowIsLockedOpensWithoutWaiting(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	log := newLogBuffer()
	keys := api.NewKeys(b.db.Pool, log.logger())
	key, secret := b.create(nightRun)
	holder, err := b.db.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "SELECT FROM api_key WHERE key_id = $1 FOR UPDATE", key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("while the row is locked: %v", err)
	}
	if text := log.String(); text != "" {
		t.Errorf("it has waited: %s", text)
	}
	if got := b.lastUse(); !got.IsZero() {
		t.Errorf("noted past the lock, at %s", got)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Authenticate(t.Context(), secret); err != nil || b.lastUse().IsZero() {
		t.Errorf("when it is free: %v, used at %s", err, b.lastUse())
	}
}

func TestAUseThatCannotBeNotedIsLoggedOnceAndOpensAllTheSame(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	log := newLogBuffer()
	keys := api.NewKeys(b.db.Pool, log.logger())
	key, secret := b.create(nightRun)
	b.db.Exec(t, "REVOKE EXECUTE ON FUNCTION touch_key FROM fenceline_service")
	for range 3 {
		if got, err := keys.Authenticate(t.Context(), secret); err != nil || got.ID != key.ID {
			t.Errorf("%+v, %v", got, err)
		}
	}
	text := log.String()
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, key.ID) || !strings.Contains(text, "permission denied") {
		t.Errorf("log: %s", text)
	}
	if strings.Contains(text, secret) {
		t.Errorf("the secret is in the log: %s", text)
	}
	if got := b.lastUse(); !got.IsZero() {
		t.Errorf("noted at %s", got)
	}
}

func TestOneConnectionIsEnoughForManyUses(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	_, secret := b.create(nightRun)
	keys := api.NewKeys(testdb.Open(t, database.Config{URL: b.db.URL, Pool: 1}), nil)
	var uses sync.WaitGroup
	for range 20 {
		uses.Go(func() {
			if _, err := keys.Authenticate(t.Context(), secret); err != nil {
				t.Error(err)
			}
		})
	}
	uses.Wait()
	if b.lastUse().IsZero() {
		t.Error("no use was noted")
	}
}

func TestANoteWaitsForNoDiskAndNoStandby(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	key, _ := b.create(nightRun)
	tx, err := b.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var atCommit string
	_, err = tx.Exec(t.Context(), "SELECT touch_key($1)", key.ID)
	if err == nil {
		err = tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&atCommit)
	}
	if err != nil || atCommit != "off" {
		t.Errorf("synchronous_commit is %q, %v", atCommit, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if b.lastUse().IsZero() {
		t.Error("no use was noted")
	}
}
