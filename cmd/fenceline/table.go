package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fenceline/fenceline/client"
)

// newTable is a table for people.
func newTable(to io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(to, 0, 0, 2, ' ', 0) }

// printRows prints names and values, without those that have none.
func printRows(to io.Writer, rows [][2]string) error {
	table := newTable(to)
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
		}
	}
	return table.Flush()
}

// publicationRows are what there is to say of a version.
func publicationRows(p *client.Publication) [][2]string {
	rows := [][2]string{
		{"report", p.Report},
		{"version", fmt.Sprint(p.Version)},
		{"fence", p.Fence.String()},
		{"published", shownTime(p.PublishedAt)},
	}
	if p.Object == nil {
		rows = append(rows, [2]string{"object", "withdrawn"})
	} else {
		rows = append(rows, [2]string{"object", p.Object.Key}, [2]string{"size", fmt.Sprint(p.Object.Size)},
			[2]string{"sha256", p.Object.SHA256}, [2]string{"content_type", p.Object.ContentType}, [2]string{"filename", p.Object.Filename})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Metadata)) {
		rows = append(rows, [2]string{"metadata " + name, p.Metadata[name]})
	}
	return append(rows, [2]string{"held", shownTime(p.HeldAt)}, [2]string{"erased", shownTime(p.ErasedAt)})
}

// publicationHead is the head of a table of versions, and publicationLine a line of it.
const publicationHead = "VERSION\tFENCE\tPUBLISHED\tSIZE\tSHA256\tNOTES"

func publicationLine(p *client.Publication) string {
	size, digest := "-", "-"
	var notes []string
	if p.Object != nil {
		size, digest = fmt.Sprint(p.Object.Size), p.Object.SHA256[:min(len(p.Object.SHA256), 12)]
	} else {
		notes = append(notes, "withdrawn")
	}
	for _, note := range []struct {
		said bool
		text string
	}{{p.Visible != nil && *p.Visible, "visible"}, {!p.HeldAt.IsZero(), "held"}, {!p.ErasedAt.IsZero(), "erased"}} {
		if note.said {
			notes = append(notes, note.text)
		}
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s", p.Version, p.Fence, shownTime(p.PublishedAt), size, digest, strings.Join(notes, ", "))
}

// shownMoment is a time for people, and nothing where there is none.
func shownMoment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return shownTime(*t)
}

// shownCount is a number of objects with their bytes.
func shownCount(c client.CollectorCount) string {
	return fmt.Sprintf("%d objects (%d bytes)", c.Objects, c.Bytes)
}

// orNothing is the text, and nothing where there is none.
func orNothing(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
