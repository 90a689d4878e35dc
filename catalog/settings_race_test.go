package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

// contested is a report with three versions, of which the first is due, whose lease has expired, and a fourth object
// that may be published.
type contested struct {
	keeper
	t      *testing.T
	report fencing.ReportID
	fence  fencing.Fence
}

// contest makes the next one in a database; before are its settings before they change.
func (k keeper) contest(t *testing.T, report fencing.ReportID, held bool, before func(catalog.Changes)) *contested {
	t.Helper()
	k.clear(t)
	c := &contested{keeper: k, t: t, report: report, fence: k.grant(t, string(report), "a7")}
	c.stage(t, string(report), c.fence, "first", "second", "third", "fourth")
	for _, id := range []fencing.ObjectID{"first", "second", "third", "fourth"} {
		name := fencing.ObjectName{Report: report, Fence: c.fence, Object: id}
		k.upload(t, name) // so that a publish is one question to the database
	}
	for n, id := range []fencing.ObjectID{"first", "second", "third"} {
		wantErr(t, c.publish(func(r *catalog.Request) { r.Object = id; expecting(int64(n))(r) })(t.Context()), nil)
		if id == "second" {
			k.db.Advance(t, 4*step)
		}
	}
	if held {
		wantErr(t, k.Hold(t.Context(), report, 1, "test"), nil)
	}
	wantErr(t, c.changed(before)(t.Context()), nil)
	return c
}

// publish asks for a version after the third, unless edit says otherwise.
func (c *contested) publish(edit func(*catalog.Request)) func(context.Context) error {
	r := object(c.fence, "", "", expecting(3), edit)
	r.Report = c.report
	r.IdempotencyKey = fmt.Sprintf("after %d", *r.ExpectedVersion)
	return func(ctx context.Context) error {
		_, err := c.Publish(ctx, r)
		return err
	}
}

func (c *contested) changed(set func(catalog.Changes)) func(context.Context) error {
	changes := catalog.Changes{}
	set(changes)
	return func(ctx context.Context) error {
		_, err := c.ChangeSettings(ctx, c.report, changes)
		return err
	}
}

// contestants are what is done while a setting changes.
var contestants = []struct {
	name string
	held bool // the first version, beforehand
	// looksAhead: it chooses what it is about before it waits for the report, and so may come before what it waits for.
	looksAhead bool
	does       func(*contested) func(context.Context) error
}{
	{"publish", false, false, func(c *contested) func(context.Context) error {
		return c.publish(func(r *catalog.Request) { r.Object = "fourth" })
	}},
	{"roll back", false, false, func(c *contested) func(context.Context) error {
		return c.publish(func(r *catalog.Request) { r.FromVersion = 1 })
	}},
	{"withdraw", false, false, func(c *contested) func(context.Context) error {
		return c.publish(func(r *catalog.Request) { r.Withdraw = true })
	}},
	{"erase", false, false, func(c *contested) func(context.Context) error {
		return func(ctx context.Context) error { return c.Erase(ctx, c.report, 1, "asked to", "test") }
	}},
	{"hold", false, false, func(c *contested) func(context.Context) error {
		return func(ctx context.Context) error { return c.Hold(ctx, c.report, 1, "test") }
	}},
	{"unhold", true, false, func(c *contested) func(context.Context) error {
		return func(ctx context.Context) error { return c.Unhold(ctx, c.report, 1, "test") }
	}},
	{"collect", false, true, func(c *contested) func(context.Context) error { return c.pass }},
}

// story is all that can be seen of what came of it: the answers, and then how everything stands, now and later.
type story struct {
	Answers  []string
	Settings catalog.Settings
	Visible  string
	Objects  []string // at three times
}

// tell looks, lets time pass, and looks again; and demands at each time what must hold whatever has happened.
func (c *contested) tell(answers []error) story {
	c.t.Helper()
	s := story{}
	for _, err := range answers {
		if err == nil {
			err = errors.New("done")
		}
		s.Answers = append(s.Answers, strings.ReplaceAll(err.Error(), string(c.report), "july"))
	}
	var err error
	if s.Settings, err = c.Settings(c.t.Context(), c.report); err != nil {
		c.t.Fatal(err)
	}
	visible, err := c.Visible(c.t.Context(), c.report)
	switch {
	case err == nil:
		s.Visible = fmt.Sprint(visible.Version, " ", visible.Object.Name.Object)
	case errors.Is(err, catalog.ErrWithdrawn):
		s.Visible = "withdrawn"
	default:
		c.t.Fatal(err)
	}
	for _, later := range []time.Duration{0, 4 * step, 100 * step} {
		if later > 0 {
			c.db.Advance(c.t, later)
			c.collect(c.t)
		}
		s.Objects = append(s.Objects, fmt.Sprint(later, " later: ", c.objects(later == 100*step)))
	}
	return s
}

// objects tells how each object stands. What something keeps must be there with its bytes; in the end all the rest has
// been taken.
func (c *contested) objects(end bool) []string {
	c.t.Helper()
	const query = `
		SELECT o.object_id, e.verdict, e.reason, kept_as(r, o.fence_epoch, o.fence_counter, o.object_id) AS kept,
		       o.state IN ('condemned', 'deleted') AS condemned
		FROM object o
		JOIN report r USING (report_id)
		CROSS JOIN LATERAL explain_object(report_id, fence_epoch, fence_counter, object_id) e
		WHERE o.report_id = $1
		ORDER BY o.object_id`
	type row struct {
		ObjectID        fencing.ObjectID
		Verdict, Reason string
		Kept            *string
		Condemned       bool
	}
	rows, err := c.db.Owner.Query(c.t.Context(), query, c.report)
	if err != nil {
		c.t.Fatal(err)
	}
	objects, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		c.t.Fatal(err)
	}
	keys := c.storage.Keys(c.t)
	var stand []string
	for _, o := range objects {
		stand = append(stand, fmt.Sprint(o.ObjectID, " ", o.Verdict, " ", o.Reason))
		there := slices.Contains(keys, keyOf(fencing.ObjectName{Report: c.report, Fence: c.fence, Object: o.ObjectID}))
		switch {
		case o.Kept != nil && *o.Kept == "kept_version" && o.Condemned: // before it came to be kept, which the answers tell
		case o.Kept != nil && (o.Condemned || !there || o.Verdict != "kept"):
			c.t.Errorf("object %q is %s, but is %s %s, and its bytes are there: %v", o.ObjectID, *o.Kept, o.Verdict, o.Reason, there)
		case o.Kept == nil && end && !o.Condemned:
			c.t.Errorf("nothing keeps object %q, and it is %s %s in the end", o.ObjectID, o.Verdict, o.Reason)
		}
	}
	return stand
}

func TestWhateverIsDoneWhileASettingChangesComesBeforeItOrAfterIt(t *testing.T) {
	t.Parallel()
	mode := func(m catalog.Mode) func(catalog.Changes) { return func(c catalog.Changes) { c.SetFencing(&m) } }
	times := func(p catalog.PublishesPerGrant) func(catalog.Changes) {
		return func(c catalog.Changes) { c.SetPublishesPerGrant(&p) }
	}
	for _, change := range []struct {
		name          string
		before, after func(catalog.Changes)
	}{
		{"fencing to live", mode(catalog.Accepted), mode(catalog.Live)},
		{"fencing from live", mode(catalog.Live), mode(catalog.Granted)},
		{"publishes to one", times(catalog.Many), times(catalog.One)},
		{"publishes to many", times(catalog.One), times(catalog.Many)},
		{"longer retention", retaining(short), retaining(long)},
		{"shorter retention", retaining(long), retaining(short)},
		{"more versions", keeping(0), keeping(2)},
		{"fewer versions", keeping(2), keeping(0)},
	} {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t)
			n := 0
			for _, contestant := range contestants {
				play := func(changeFirst, race bool) story {
					n++
					c := k.contest(t, fencing.ReportID(fmt.Sprintf("july.%d", n)), contestant.held, change.before)
					calls := []func(context.Context) error{c.changed(change.after), contestant.does(c)}
					if !changeFirst {
						slices.Reverse(calls)
					}
					answers := k.meet(t, c.report, race, calls)
					if !changeFirst {
						slices.Reverse(answers)
					}
					return c.tell(answers)
				}
				after, before := play(true, false), play(false, false)
				for changeFirst, want := range map[bool]story{true: after, false: before} {
					got := play(changeFirst, true)
					if contestant.looksAhead && (cmp.Equal(got, after) || cmp.Equal(got, before)) {
						continue
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s, the change first: %v (-one after the other +at once):\n%s", contestant.name, changeFirst, diff)
					}
				}
			}
		})
	}
}

// meet makes the calls one after the other, or lets all wait for the report in this order.
func (k keeper) meet(t *testing.T, report fencing.ReportID, race bool, calls []func(context.Context) error) []error {
	t.Helper()
	if race {
		return k.db.InTurn(t, string(report), calls...)
	}
	var errs []error
	for _, call := range calls {
		errs = append(errs, call(t.Context()))
	}
	return errs
}
