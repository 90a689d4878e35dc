package api_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestAKeyThatWasMadeOpensUntilItEnds(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	keys := api.NewKeys(db.Owner, nil)

	key, secret, err := keys.Create(t.Context(), api.NewKey{Name: "night run", Role: api.RoleWorker, Pattern: "sales.*"})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^fl_[a-z2-7]{16}_[a-z2-7]{32}$`).MatchString(secret) {
		t.Errorf("secret of the form %q", secret)
	}
	got, err := keys.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(key, got); diff != "" {
		t.Errorf("key (-made +found):\n%s", diff)
	}
	if got.Name != "night run" || got.Role != api.RoleWorker || got.Pattern != "sales.*" || got.ID != strings.Split(secret, "_")[1] {
		t.Errorf("key %+v", got)
	}

	for _, column := range []string{"revoked_at", "expires_at"} {
		change := func(value string) {
			if _, err := db.Owner.Exec(t.Context(), "UPDATE api_key SET "+column+" = "+value); err != nil {
				t.Fatal(err)
			}
		}
		change("fenceline_now()")
		if _, err := keys.Authenticate(t.Context(), secret); !errors.Is(err, api.ErrUnauthenticated) {
			t.Errorf("%s has come: %v", column, err)
		}
		change("NULL")
	}
	if _, err := db.Owner.Exec(t.Context(), "UPDATE api_key SET expires_at = fenceline_now() + interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	if got, err := keys.Authenticate(t.Context(), secret); err != nil || got.ExpiresAt == nil {
		t.Errorf("an hour before it expires: %+v, %v", got, err)
	}
}

func TestOnlyTheWholeSecretOpens(t *testing.T) {
	t.Parallel()
	keys := api.NewKeys(testdb.New(t).Owner, nil)
	made := func() string {
		_, secret, err := keys.Create(t.Context(), api.NewKey{Name: "a", Role: api.RoleReader, Pattern: "*"})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	one, other := strings.Split(made(), "_"), strings.Split(made(), "_")
	for _, secret := range []string{
		"fl_" + one[1] + "_" + other[2], "fl_" + one[1] + "_", "fl_" + one[1] + "_" + one[2][1:],
		"fl_aaaaaaaa_" + one[2],
	} {
		if _, err := keys.Authenticate(t.Context(), secret); !errors.Is(err, api.ErrUnauthenticated) {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

func TestADatabaseThatIsAwayRefusesNobody(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	keys := api.NewKeys(db.Owner, nil)
	_, secret, err := keys.Create(t.Context(), api.NewKey{Name: "a", Role: api.RoleReader, Pattern: "*"})
	if err != nil {
		t.Fatal(err)
	}
	db.Owner.Close()
	if _, err := keys.Authenticate(t.Context(), secret); err == nil || errors.Is(err, api.ErrUnauthenticated) {
		t.Errorf("Authenticate: %v", err)
	}
}
