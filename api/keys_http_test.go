package api_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/testservice"
)

func TestAKeyThatHasEndedIsRefusedLikeOneThatNeverWas(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	path := "/v1/reports"
	refused := func(name, secret string) testservice.Answer {
		t.Helper()
		answer := s.DoAs(t, secret, "GET", path, nil).Refused(t, 401, "unauthenticated")
		challenges := answer.Header.Values("WWW-Authenticate")
		if !slices.ContainsFunc(challenges, hasScheme("Bearer")) || !slices.ContainsFunc(challenges, hasScheme("Basic")) {
			t.Errorf("%s: challenges %q", name, challenges)
		}
		return answer
	}
	create := func(life time.Duration) (api.Key, string) {
		t.Helper()
		key, secret, err := s.OwnerKeys().Create(t.Context(), api.NewKey{Name: "a", Role: api.RoleReader, Pattern: "*", Life: life})
		if err != nil {
			t.Fatal(err)
		}
		return key, secret
	}
	_, expired := create(time.Hour)
	key, revoked := create(0)
	for _, secret := range []string{expired, revoked} {
		s.DoAs(t, secret, "GET", path, nil).Want(t, 200)
	}
	s.DB.Advance(t, time.Hour)
	if _, err := s.OwnerKeys().Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	unknown := refused("unknown", "fl_abcdefgh22222222_abcdefghijklmnopqrstuvwxyz234567")
	for name, secret := range map[string]string{"expired": expired, "revoked": revoked} {
		if got := refused(name, secret).String(t, "detail"); got != unknown.String(t, "detail") {
			t.Errorf("%s: the answer tells why: %q", name, got)
		}
	}
}

func TestBothKeysOfARotationOpenUntilTheOverlapIsOver(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	path := "/v1/reports/july/leases/a7"
	lease := map[string]any{"holder": "A", "ttl_ms": 30000}
	old := s.NewKey(t, api.RoleWorker, "ju*")
	var successor string
	_, err := s.OwnerKeys().Rotate(t.Context(), api.KeyID(old), time.Hour, func(_ api.Key, secret string) error {
		successor = secret
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.DoAs(t, old, "PUT", path, lease).Want(t, 201)
	s.DoAs(t, successor, "PUT", path, lease).Want(t, 200)
	s.DoAs(t, successor, "PUT", "/v1/reports/august/leases/a7", lease).Refused(t, 403, "forbidden")

	s.DB.Advance(t, time.Hour)
	s.DoAs(t, old, "GET", path, nil).Refused(t, 401, "unauthenticated")
	s.DoAs(t, successor, "GET", path, nil).Want(t, 200)
}
