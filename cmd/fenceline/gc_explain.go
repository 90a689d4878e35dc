package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fenceline/fenceline/client"
)

// gcExplainCmd says why an object is kept, or from when it goes.
type gcExplainCmd struct {
	Report string `arg:"" help:"The report."`
	Object string `arg:"" help:"FENCE/OBJECT_ID, such as 1.42/july.csv; or OBJECT_ID alone: those of all grants, the newest first."`
	JSON   bool   `name:"json" help:"Print the answer as JSON."`
	remote
}

// Run prints what the service says: the predicate is the collector's own.
func (c *gcExplainCmd) Run(ctx context.Context, out *console) error {
	text, id, named := strings.Cut(c.Object, "/")
	if !named {
		return c.explainAll(ctx, out)
	}
	fence, err := client.ParseFence(text)
	if err != nil {
		return usageError{err}
	}
	object, err := c.client().Object(ctx, c.Report, fence, id)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, object)
	}
	_, err = fmt.Fprintln(out.Out, explained(object))
	return err
}

// explainAll prints it of every grant's object of the id.
func (c *gcExplainCmd) explainAll(ctx context.Context, out *console) error {
	items := []*client.ObjectRecord{}
	for object, err := range c.client().Objects(ctx, c.Report, c.Object) {
		if err != nil {
			return err
		}
		items = append(items, object)
	}
	if len(items) == 0 {
		return fmt.Errorf("%w: report %q has no object %q on record: it was never reserved, or deleted long ago", client.ErrNotFound, c.Report, c.Object)
	}
	if c.JSON {
		return printJSON(out.Out, struct {
			Items []*client.ObjectRecord `json:"items"`
		}{items})
	}
	for _, object := range items {
		if _, err := fmt.Fprintln(out.Out, explained(object)); err != nil {
			return err
		}
	}
	return nil
}

// explained says in a line what the collector makes of an object.
func explained(o *client.ObjectRecord) string {
	state := o.State
	if o.FoundAt != nil && state == "reserved" {
		state = "unknown to the catalog, found in the bucket at " + shownMoment(o.FoundAt)
	}
	return fmt.Sprintf("%s/%s is %s. %s", o.Fence, o.ObjectID, state, outlook(o))
}

// outlook says why an object is kept and until when, or from when it goes and why.
func outlook(o *client.ObjectRecord) string {
	until := shownMoment(o.EligibleAt)
	switch {
	case o.State == "deleted":
		return fmt.Sprintf("It was condemned because %s, and its bytes are gone.", because(o.CondemnedBecause))
	case o.State == "condemned" && o.PurgeAttempts > 0:
		stuck := ""
		if o.Stuck {
			stuck = ", and it counts as stuck"
		}
		return fmt.Sprintf("It was condemned because %s, which is final, and its bytes should have gone: the storage has refused to delete them %d times%s. It is asked again from %s on; the last time it said: %s",
			because(o.CondemnedBecause), o.PurgeAttempts, stuck, shownMoment(o.RetryAt), strings.Join(strings.Fields(o.PurgeError), " "))
	case o.State == "condemned":
		return fmt.Sprintf("It was condemned because %s, which is final: its bytes are deleted from %s on.", because(o.CondemnedBecause), shownMoment(o.PurgeAfter))
	case o.KeptBecause == nil:
		return fmt.Sprintf("Since %s it is due, because %s: the next pass condemns it.", until, because(o.DueBecause))
	}
	if h := o.HeldBack; h != nil {
		return fmt.Sprintf("Since %s it is due, because %s, and held back by the brake of run %d, until an operator approves that: fenceline gc approve %d.",
			until, because(h.Reason), h.RunID, h.RunID)
	}
	switch *o.KeptBecause {
	case "visible":
		return "It is kept because readers see it, for as long as they do; then its retention begins."
	case "held":
		return "It is kept because a version that shows it is held, until the hold is lifted; then its retention begins."
	case "kept_version":
		return "It is kept because it is one of the newest versions, which the report keeps (keep_versions), until newer ones take its place; then its retention begins."
	case "within_retention":
		if until == "" {
			return "It is kept because its retention has not ended."
		}
		return fmt.Sprintf("It is kept because its retention lasts until %s; from then on a pass may condemn it.", until)
	case "live_lease":
		return fmt.Sprintf("It is due, and kept because the lease under which it was staged is live, until %s at the latest unless that is renewed.", until)
	case "frozen":
		return "It is due, and kept because its report is frozen, until that is unfrozen."
	}
	return fmt.Sprintf("It is kept: %s.", *o.KeptBecause)
}

// because is a reason of the collector as the end of a sentence.
func because(reason string) string {
	switch reason {
	case "never_sealed":
		return "it was never sealed, so nobody knows what was uploaded, and its retention has ended"
	case "never_published":
		return "it was never published, and its retention has ended"
	case "superseded":
		return "it was superseded, and its retention has ended"
	case "discarded":
		return "its worker discarded it"
	case "erased":
		return "its version was erased"
	case "unknown":
		return "the catalog does not know it, and its retention has ended"
	}
	return reason
}
