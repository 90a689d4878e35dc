package api

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// wire is how Go values stand in JSON, in both directions: a time.Duration as
// whole milliseconds (its member is called `…_ms`), rounded down, so that nobody
// is promised more than there is; a time.Time as RFC 3339 in UTC. Never changed.
var wire = json.JoinOptions(
	json.Deterministic(true),
	json.RejectUnknownMembers(true),
	json.WithMarshalers(json.JoinMarshalers(
		json.MarshalToFunc(marshalMillis),
		json.MarshalToFunc(marshalUTC),
	)),
	json.WithUnmarshalers(json.UnmarshalFromFunc(unmarshalMillis)),
)

// errMillisRange reports that a number of milliseconds exceeds 292 years.
var errMillisRange = errors.New("too many milliseconds")

func marshalMillis(enc *jsontext.Encoder, d time.Duration) error {
	return enc.WriteToken(jsontext.Int(d.Milliseconds()))
}

func unmarshalMillis(dec *jsontext.Decoder, d *time.Duration) error {
	var ms int64
	err := json.UnmarshalDecode(dec, &ms)
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		semantic.GoType = reflect.TypeFor[time.Duration]() // milliseconds are what was asked for
	}
	if err != nil {
		return err
	}
	if ms > math.MaxInt64/int64(time.Millisecond) || ms < math.MinInt64/int64(time.Millisecond) {
		return errMillisRange
	}
	*d = time.Duration(ms) * time.Millisecond
	return nil
}

func marshalUTC(enc *jsontext.Encoder, t time.Time) error {
	return enc.WriteToken(jsontext.String(t.UTC().Format(time.RFC3339Nano)))
}

// writeJSON answers with v. It is encoded before anything is sent, so that a
// value that cannot be encoded is an error and not half an answer.
func writeJSON(c echo.Context, status int, v any) error {
	body, err := json.Marshal(v, wire)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return c.Blob(status, echo.MIMEApplicationJSON, body)
}
