package api

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/fenceline/fenceline/gc"
)

// WriteRunLine writes the record of a pass in one line: the answer of GET /v1/gc/runs/{run_id}, with the type "run".
func WriteRunLine(to io.Writer, r gc.Record) error { return writeLine(to, "run", viewRun(r)) }

// WriteEntryLine writes what a pass did with one object in one line: an item of GET /v1/gc/runs/{run_id}/objects, with
// the type "object".
func WriteEntryLine(to io.Writer, e gc.Entry) error { return writeLine(to, "object", viewEntry(e)) }

// writeLine writes an answer of the service with a member that tells lines apart.
func writeLine[T any](to io.Writer, kind string, view T) error {
	line := struct {
		Type string `json:"type"`
		View T      `json:",embed"`
	}{kind, view}
	text, err := json.Marshal(line, wire)
	if err != nil {
		return fmt.Errorf("encode a line of type %q: %w", kind, err)
	}
	_, err = to.Write(append(text, '\n'))
	return err
}
