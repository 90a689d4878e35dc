package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

// decisive is the decisive race of one report: a was granted and has staged its object when it was paused, b is its
// successor.
type decisive struct {
	keeper
	report fencing.ReportID
	a, b   fencing.Fence
}

// prepare lets a come as far as its publish.
func (d *decisive) prepare(t *testing.T, m catalog.Mode) {
	t.Helper()
	d.a = d.grant(t, string(d.report), "a7")
	d.b = fencing.Fence{Epoch: d.a.Epoch, Counter: d.a.Counter + 1}
	d.sealed(t, d.a)
	if err := d.switchTo(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	d.db.Advance(t, 2*ttl)
}

// sealed stages an object whose bytes are known, so that a publish is one question to the database.
func (d *decisive) sealed(t *testing.T, f fencing.Fence) {
	t.Helper()
	d.stage(t, string(d.report), f, "o")
	if err := sealIn(d.db.Pool)(t.Context(), fencing.ObjectName{Report: d.report, Fence: f, Object: "o"}); err != nil {
		t.Fatal(err)
	}
}

// switchTo changes the mode; nil is the service's.
func (d *decisive) switchTo(ctx context.Context, m *catalog.Mode) error {
	changes := catalog.Changes{}
	changes.SetFencing(m)
	_, err := d.ChangeSettings(ctx, d.report, changes)
	return err
}

// grantB is what b asks for.
func (d *decisive) grantB(ctx context.Context) error {
	var status string
	err := d.db.Pool.QueryRow(ctx, "SELECT status FROM acquire($1, 'b9', 'B', $2)", d.report, ttl.Milliseconds()).Scan(&status)
	if err == nil && status != "acquired" {
		err = errors.New("acquire: " + status)
	}
	return err
}

// publishes is a publish under a fence.
func (d *decisive) publishes(f *fencing.Fence, key string) func(context.Context) error {
	return func(ctx context.Context) error {
		r := object(*f, "o", key)
		r.Report = d.report
		_, err := d.Publish(ctx, r)
		return err
	}
}

// raceStep is one thing that happens, and whether it must be refused in a mode.
type raceStep struct {
	name    string
	call    func(context.Context) error
	refused func(catalog.Mode) bool
}

// steps are the race; early: a returns also before b publishes.
func (d *decisive) steps(early bool) []raceStep {
	never := func(catalog.Mode) bool { return false }
	always := func(catalog.Mode) bool { return true }
	all := []raceStep{
		{"b's grant", d.grantB, never},
		{"a's return before b's publish", d.publishes(&d.a, "early"), func(m catalog.Mode) bool { return m != catalog.Accepted }},
		{"b's publish", d.publishes(&d.b, "b"), never},
		{"a's return", d.publishes(&d.a, "late"), always},
	}
	if !early {
		all = append(all[:1], all[2:]...)
	}
	return all
}

// The moments of a switch, as seen from a step: well before it, at the report's lock just before or just behind it.
const (
	wellBefore = iota
	justBefore
	justBehind
	moments
)

func TestWhoeverComesLateIsRefusedAtWhicheverMomentTheModeIsSwitched(t *testing.T) {
	t.Parallel()
	modes := []catalog.Mode{catalog.Granted, catalog.Accepted, catalog.Live}
	for _, from := range modes {
		for _, to := range modes {
			if from == to {
				continue
			}
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				t.Parallel()
				k := newKeeper(t)
				k.defaults(t, catalog.Config{Retention: short, Fencing: to})
				n := 0
				for _, early := range []bool{false, true} {
					for at := range (&decisive{}).steps(early) {
						for moment := range moments {
							for _, target := range []*catalog.Mode{&to, nil} { // the report's own, or the service's again
								n++
								d := &decisive{keeper: k, report: fencing.ReportID(fmt.Sprintf("july.%d", n))}
								d.race(t, from, to, target, early, at, moment)
							}
						}
					}
				}
			})
		}
	}
}

// race plays the steps, with one switch.
func (d *decisive) race(t *testing.T, from, to catalog.Mode, target *catalog.Mode, early bool, at, moment int) {
	t.Helper()
	d.prepare(t, from)
	change := func(ctx context.Context) error { return d.switchTo(ctx, target) }
	version := int64(0)
	for n, s := range d.steps(early) {
		mode := from
		if n > at || n == at && moment != justBehind {
			mode = to
		}
		var got error
		switch {
		case n == at && moment == justBefore:
			errs := d.db.InTurn(t, string(d.report), change, s.call)
			wantErr(t, errs[0], nil)
			got = errs[1]
		case n == at && moment == justBehind:
			errs := d.db.InTurn(t, string(d.report), s.call, change)
			got = errs[0]
			wantErr(t, errs[1], nil)
		case n == at:
			wantErr(t, change(t.Context()), nil)
			got = s.call(t.Context())
		default:
			got = s.call(t.Context())
		}
		what := fmt.Sprintf("%s, own: %v, early: %v, switched at step %d, moment %d: %s", d.report, target != nil, early, at, moment, s.name)
		if !s.refused(mode) {
			if got != nil {
				t.Fatalf("%s: %v, in the mode %s", what, got, mode)
			}
			if s.name == "b's grant" {
				d.sealed(t, d.b)
			} else {
				version++
			}
			continue
		}
		stale, ok := errors.AsType[*fencing.StaleError](got)
		if want := (fencing.StaleError{Presented: d.a, Highest: d.b, Reason: "superseded"}); !ok || *stale != want {
			t.Errorf("%s: %v, want %v in the mode %s", what, got, &want, mode)
		}
	}
	p, err := d.Visible(t.Context(), d.report)
	if err != nil || p.Object.Name.Fence != d.b || p.Version != version {
		t.Errorf("%s: readers see %+v, %v, want b's version %d", d.report, p, err, version)
	}
	if n := testdb.Value[int64](t, d.db, "SELECT count(*) FROM publication WHERE report_id = $1", d.report); n != version {
		t.Errorf("%s: there are %d versions, want %d", d.report, n, version)
	}
}
