package api_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/testdb"
)

// keyBundle is a database with its keys.
type keyBundle struct {
	t    *testing.T
	db   *testdb.DB
	keys *api.Keys
}

func setUpKeys(t *testing.T) keyBundle {
	t.Helper()
	db := testdb.New(t)
	return keyBundle{t: t, db: db, keys: api.NewKeys(db.Owner, nil)}
}

func (b keyBundle) create(n api.NewKey) (api.Key, string) {
	b.t.Helper()
	key, secret, err := b.keys.Create(b.t.Context(), n)
	if err != nil {
		b.t.Fatal(err)
	}
	return key, secret
}

// wantOpen checks whether a secret opens.
func (b keyBundle) wantOpen(when, secret string, want bool) {
	b.t.Helper()
	_, err := b.keys.Authenticate(b.t.Context(), secret)
	if open := err == nil; open != want || err != nil && !errors.Is(err, api.ErrUnauthenticated) {
		b.t.Errorf("%s: opens %v (%v), want %v", when, open, err, want)
	}
}

// states lists the keys' states by id.
func (b keyBundle) states() map[string]api.KeyState {
	b.t.Helper()
	states := map[string]api.KeyState{}
	for _, k := range b.list() {
		states[k.ID] = k.State
	}
	return states
}

func (b keyBundle) list() []api.ListedKey {
	b.t.Helper()
	found, err := b.keys.List(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// rotate rotates a key and returns its successor.
func (b keyBundle) rotate(id string, overlap time.Duration) (successor api.Key, secret string, endsAt time.Time) {
	b.t.Helper()
	endsAt, err := b.keys.Rotate(b.t.Context(), id, overlap, func(k api.Key, s string) error {
		successor, secret = k, s
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return successor, secret, endsAt
}

var nightRun = api.NewKey{Name: "night run", Role: api.RoleWorker, Pattern: "sales.*"}

// lasting is night run with a life.
func lasting(life time.Duration) api.NewKey {
	n := nightRun
	n.Life = life
	return n
}

func TestAKeyOpensUntilItsLifeIsOver(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	key, secret := b.create(lasting(time.Hour))
	endless, endlessSecret := b.create(nightRun)
	if key.ExpiresAt == nil || key.ExpiresAt.Sub(key.CreatedAt) != time.Hour || endless.ExpiresAt != nil {
		t.Errorf("keys %+v and %+v", key, endless)
	}

	b.db.Advance(t, 59*time.Minute)
	b.wantOpen("a minute before", secret, true)
	b.db.Advance(t, time.Minute)
	b.wantOpen("when its life is over", secret, false)
	b.wantOpen("without end", endlessSecret, true)
	want := map[string]api.KeyState{key.ID: api.KeyExpired, endless.ID: api.KeyActive}
	if diff := cmp.Diff(want, b.states()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestAListShowsEveryKeyTheNewestFirst(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	if got := b.list(); len(got) != 0 {
		t.Errorf("before the first: %+v", got)
	}
	first, _ := b.create(nightRun)
	b.db.Advance(t, time.Hour)
	second, _ := b.create(lasting(48 * time.Hour))
	b.db.Advance(t, time.Hour)
	third, _ := b.create(nightRun)
	endedAt, err := b.keys.Revoke(t.Context(), second.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.ListedKey{
		{Key: third, State: api.KeyActive},
		{Key: second, State: api.KeyRevoked, RevokedAt: &endedAt},
		{Key: first, State: api.KeyActive},
	}
	if diff := cmp.Diff(want, b.list()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	b.db.Advance(t, 100*time.Hour)
	if got := b.states()[second.ID]; got != api.KeyRevoked {
		t.Errorf("revoked before it expired: %s", got)
	}
}

func TestARevokedKeyOpensNothingAndStaysRevokedWhenItWas(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	key, secret := b.create(nightRun)
	_, other := b.create(nightRun)

	b.wantOpen("before", secret, true)
	endedAt, err := b.keys.Revoke(t.Context(), key.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.wantOpen("after", secret, false)
	b.wantOpen("another key", other, true)

	b.db.Advance(t, time.Hour)
	again, err := b.keys.Revoke(t.Context(), key.ID)
	if err != nil || !again.Equal(endedAt) {
		t.Errorf("again: %s, %v; first %s", again, err, endedAt)
	}
	for _, id := range []string{"abcdefgh", "renderer", "", "a\x00", "fl_abcdefgh_s3cr3t", "ABCDEFGH"} {
		if _, err := b.keys.Revoke(t.Context(), id); !errors.Is(err, api.ErrKeyNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestARotatedKeyGoesOnBesideItsSuccessorForTheOverlap(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	old, oldSecret := b.create(lasting(1000 * time.Hour))
	b.db.Advance(t, 100*time.Hour)
	successor, secret, endsAt := b.rotate(old.ID, 24*time.Hour)

	if diff := cmp.Diff(old, successor, cmpopts.IgnoreFields(api.Key{}, "ID", "CreatedAt", "ExpiresAt")); diff != "" {
		t.Errorf("successor (-old +new):\n%s", diff)
	}
	if successor.ID == old.ID || successor.ExpiresAt == nil || successor.ExpiresAt.Sub(successor.CreatedAt) != 1000*time.Hour {
		t.Errorf("the old key %+v and its successor %+v", old, successor)
	}
	if overlap := endsAt.Sub(successor.CreatedAt); overlap < 24*time.Hour || overlap > 25*time.Hour {
		t.Errorf("the old key ends %s after the new one began", overlap)
	}
	b.db.Advance(t, 23*time.Hour)
	b.wantOpen("the old key within the overlap", oldSecret, true)
	b.wantOpen("its successor", secret, true)
	b.db.Advance(t, time.Hour)
	b.wantOpen("the old key after the overlap", oldSecret, false)
	b.wantOpen("its successor", secret, true)
	want := map[string]api.KeyState{old.ID: api.KeyRevoked, successor.ID: api.KeyActive}
	if diff := cmp.Diff(want, b.states()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestAnOverlapNeverPutsOffAnEnd(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)

	expiring, secret := b.create(lasting(time.Hour))
	if _, _, endsAt := b.rotate(expiring.ID, 24*time.Hour); !endsAt.Equal(*expiring.ExpiresAt) {
		t.Errorf("ends at %s, and expires at %s", endsAt, expiring.ExpiresAt)
	}
	b.db.Advance(t, time.Hour)
	b.wantOpen("when its life is over", secret, false)

	key, _ := b.create(nightRun)
	_, _, first := b.rotate(key.ID, time.Hour)
	if _, _, again := b.rotate(key.ID, 24*time.Hour); !again.Equal(first) {
		t.Errorf("rotated again: ends at %s instead of %s", again, first)
	}

	key, secret = b.create(nightRun)
	b.rotate(key.ID, 0)
	b.wantOpen("without an overlap", secret, false)
}

func TestAKeyWhoseSuccessorWasNotDeliveredGoesOn(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	key, secret := b.create(nightRun)
	full := errors.New("no space left on device")
	var undelivered string
	_, err := b.keys.Rotate(t.Context(), key.ID, 0, func(_ api.Key, s string) error {
		undelivered = s
		b.wantOpen("the old key while its successor is delivered", secret, true)
		b.wantOpen("the successor while it is delivered", s, true)
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("Rotate: %v", err)
	}
	b.db.Advance(t, 1000*time.Hour)
	b.wantOpen("the old key", secret, true)
	b.wantOpen("the successor", undelivered, true)
}

func TestWhatHasEndedOrNeverWasIsNotRotated(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	revoked, _ := b.create(nightRun)
	if _, err := b.keys.Revoke(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	expired, _ := b.create(lasting(time.Second))
	b.db.Advance(t, time.Second)
	active, _ := b.create(nightRun)

	before := len(b.list())
	for _, c := range []struct {
		name, id string
		overlap  time.Duration
		want     error
	}{
		{"revoked", revoked.ID, 0, api.ErrKeyEnded},
		{"expired", expired.ID, 0, api.ErrKeyEnded},
		{"unknown", "abcdefgh", 0, api.ErrKeyNotFound},
		{"no id", "a\x00", 0, api.ErrKeyNotFound},
		{"negative overlap", active.ID, -time.Second, nil},
		{"overlap of centuries", active.ID, 2_000_000 * time.Hour, nil},
	} {
		_, err := b.keys.Rotate(t.Context(), c.id, c.overlap, func(api.Key, string) error {
			t.Errorf("%s: a key was made", c.name)
			return nil
		})
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if after := len(b.list()); after != before {
		t.Errorf("%d keys, before %d", after, before)
	}
}

func TestKeysOfADatabaseThatIsAwayAreUnavailable(t *testing.T) {
	t.Parallel()
	b := setUpKeys(t)
	key, _ := b.create(nightRun)
	b.db.Owner.Close()
	_, _, create := b.keys.Create(t.Context(), nightRun)
	_, list := b.keys.List(t.Context())
	_, revoke := b.keys.Revoke(t.Context(), key.ID)
	_, rotate := b.keys.Rotate(t.Context(), key.ID, 0, nil)
	for name, err := range map[string]error{"Create": create, "List": list, "Revoke": revoke, "Rotate": rotate} {
		if !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
