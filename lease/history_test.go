package lease_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

func TestTheHistoryShowsEveryLeaseOnceNewestFirstWhateverTiesThereAreInTime(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "august", "other")
	o.grant(t, "july", "first")
	o.db.Exec(t, `
		INSERT INTO lease (report_id, lease_id, ended_at, end_reason, created_at)
		SELECT 'july', 'tie-' || n, now, 'released', now
		FROM generate_series(1, 9) n, (SELECT fenceline_now() AS now OFFSET 0) c`)
	o.released(t, "july", "first")
	o.grant(t, "july", "last")
	want := testdb.Value[[]string](t, o.db, `
		SELECT array_agg(lease_id ORDER BY created_at DESC, lease_id DESC) FROM lease WHERE report_id = 'july'`)
	if len(want) != 11 || want[0] != "last" || want[10] != "first" {
		t.Fatalf("the history is %v", want)
	}

	for _, limit := range []int{1, 2, 3, 10, 11, 100} {
		var got []string
		var after lease.After
		for {
			page, err := o.Leases(t.Context(), "july", after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page {
				got = append(got, string(l.ID))
				if (l.State == lease.Live) != (l.ID == "last") {
					t.Errorf("lease %q is %s", l.ID, l.State)
				}
			}
			if len(page) < limit {
				break
			}
			newest := page[len(page)-1]
			after = lease.After{CreatedAt: newest.CreatedAt, ID: newest.ID}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestTheHistoryTellsHowEachLeaseStandsNow(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, err := o.Leases(t.Context(), "july", lease.After{}, 10)
	wantErr(t, err, fencing.ErrReportNotFound)
	_, err = o.Lease(t.Context(), "july", "a7")
	wantErr(t, err, lease.ErrNotFound)
	_, err = o.Live(t.Context(), "july")
	wantErr(t, err, lease.ErrNotFound)

	o.grant(t, "july", "a7")
	o.released(t, "july", "a7")
	o.grant(t, "july", "b9")
	o.db.Advance(t, 2*ttl)
	states := func() []string {
		all, err := o.Leases(t.Context(), "july", lease.After{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, l := range slices.Backward(all) {
			told = append(told, string(l.ID)+" "+string(l.State)+" "+l.EndReason)
		}
		return told
	}
	// Nobody has asked about b9 since it expired; it is told all the same.
	if diff := cmp.Diff([]string{"a7 ended released", "b9 ended expired"}, states()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.grant(t, "july", "c3")
	if diff := cmp.Diff([]string{"a7 ended released", "b9 ended superseded", "c3 live "}, states()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
