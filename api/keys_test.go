package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
)

func TestASecretOfAnotherFormIsRefusedWithoutAskingTheDatabase(t *testing.T) {
	t.Parallel()
	keys := api.NewKeys(nil, nil)
	for _, secret := range []string{
		"", "fl", "fl_", "fl_abcdefgh", "xx_abcdefgh_secret", "fl_short_secret", "fl_abcdefghijklmnopq_secret",
		"fl_ABCDEFGH_secret", "fl_abcdefg1_secret", "fl_abcdefg\x00_secret", "fl_abcdefgh_secret_", "fl_abcdefgh_\xff",
		" fl_abcdefgh_secret",
	} {
		if _, err := keys.Authenticate(t.Context(), secret); !errors.Is(err, api.ErrUnauthenticated) {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

func TestAKeyThatMakesNoSenseIsNotMade(t *testing.T) {
	t.Parallel()
	keys := api.NewKeys(nil, nil)
	for complaint, key := range map[string]api.NewKey{
		`name ""`:       {Role: api.RoleReader, Pattern: "*"},
		`name "a\x00"`:  {Name: "a\x00", Role: api.RoleReader, Pattern: "*"},
		`name "a\nb"`:   {Name: "a\nb", Role: api.RoleReader, Pattern: "*"},
		`200 printable`: {Name: strings.Repeat("a", 201), Role: api.RoleReader, Pattern: "*"},
		`role "root"`:   {Name: "a", Role: "root", Pattern: "*"},
		`role ""`:       {Name: "a", Pattern: "*"},
		`pattern "a*b"`: {Name: "a", Role: api.RoleReader, Pattern: "a*b"},
		`pattern ""`:    {Name: "a", Role: api.RoleReader},
		`life -1h0m0s`:  {Name: "a", Role: api.RoleReader, Pattern: "*", Life: -time.Hour},
		`life 999ms`:    {Name: "a", Role: api.RoleReader, Pattern: "*", Life: 999 * time.Millisecond},
		`ten years`:     {Name: "a", Role: api.RoleReader, Pattern: "*", Life: 87601 * time.Hour},
	} {
		if _, _, err := keys.Create(t.Context(), key); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%+v: %v, want %s", key, err, complaint)
		}
	}
}

func TestAKeyIsNamedByItsIDOrItsSecretAndNoSecretComesBack(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"abcdefgh22222222":              "abcdefgh22222222",
		"fl_abcdefgh22222222_s3cr3t":    "abcdefgh22222222",
		"fl_abcdefgh22222222_s3cr3t_..": "abcdefgh22222222",
		"fl_abcdefgh22222222":           "abcdefgh22222222",
		"fl_":                           "",
		"renderer":                      "renderer",
		"":                              "",
	} {
		if got := api.KeyID(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
