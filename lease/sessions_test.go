package lease_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// inZone is the authority as a process sees it whose sessions are set to a time zone.
func inZone(t *testing.T, db *testdb.DB, zone string) office {
	t.Helper()
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("timezone", zone)
	u.RawQuery = query.Encode()
	pool, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	var shown string
	if err := pool.QueryRow(t.Context(), "SHOW timezone").Scan(&shown); err != nil || shown != zone {
		t.Fatalf("the session is in %q, %v", shown, err)
	}
	return office{Authority: lease.New(pool), db: db}
}

func TestSessionsInTheFarthestTimeZonesDecideTheSame(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	east, west := inZone(t, db, "<+14>-14"), inZone(t, db, "<-14>+14") // POSIX counts the other way round
	for _, c := range []struct {
		name          string
		holder, other office
		report        fencing.ReportID
	}{
		{"the holder in the east", east, west, "july"},
		{"the holder in the west", west, east, "august"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.holder.grant(t, c.report, "a7")
			_, err := c.other.Acquire(t.Context(), asking(c.report, "b9"))
			if busy, ok := errors.AsType[*lease.BusyError](err); !ok || busy.RetryAfter > ttl || busy.RetryAfter < ttl/2 {
				t.Errorf("the other got %v, want busy for about %v", err, ttl)
			}
			live, err := c.other.Live(t.Context(), c.report)
			if err != nil || live.Remaining > ttl || live.Remaining < ttl/2 {
				t.Errorf("the other sees %+v, %v", live, err)
			}
			db.Advance(t, ttl/2)
			if r := c.holder.renewed(t, c.report, "a7", 0); r.Remaining != ttl {
				t.Errorf("%v remain after a renewal, want %v", r.Remaining, ttl)
			}
			db.Advance(t, 2*ttl)
			b := c.other.grant(t, c.report, "b9")
			if b.Remaining != ttl || b.Fence.Compare(a.Fence) <= 0 {
				t.Errorf("the other was granted %+v after %s", b, a.Fence)
			}
			_, err = c.holder.Renew(t.Context(), c.report, "a7", 0)
			wantLost(t, err, "superseded")
			record, err := c.holder.Lease(t.Context(), c.report, "a7")
			if err != nil || record.EndedAt == nil || record.EndedAt.Sub(*record.GrantedAt) < 2*ttl || record.EndedAt.Sub(*record.GrantedAt) > 4*ttl {
				t.Errorf("it lasted as shown in %+v, %v", record, err)
			}
		})
	}
}
