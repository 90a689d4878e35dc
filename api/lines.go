package api

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/verify"
)

// WriteRunLine writes the record of a pass in one line: the answer of GET /v1/gc/runs/{run_id}, with the type "run".
func WriteRunLine(to io.Writer, r gc.Record) error { return writeLine(to, "run", viewRun(r)) }

// WriteEntryLine writes what a pass did with one object in one line: an item of GET /v1/gc/runs/{run_id}/objects, with
// the type "object".
func WriteEntryLine(to io.Writer, e gc.Entry) error { return writeLine(to, "object", viewEntry(e)) }

// WriteProgressLine writes how far a pass has come in one line: the progress of GET /v1/gc/runs/{run_id}, with the type
// "progress".
func WriteProgressLine(to io.Writer, p *gc.Progress) error {
	return writeLine(to, "progress", *viewProgress(p))
}

// WriteVerificationLine writes the record of a verification in one line: the answer of
// GET /v1/verifications/{verification_id}, with the type "verification".
func WriteVerificationLine(to io.Writer, r verify.Record) error {
	return writeLine(to, "verification", viewVerification(r))
}

// WriteFindingLine writes what is not as it was published in one line: an item of
// GET /v1/verifications/{verification_id}/findings, with the type "finding".
func WriteFindingLine(to io.Writer, f verify.Finding) error {
	return writeLine(to, "finding", viewFinding(f))
}

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
