package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// decode reads the request's body, a JSON object, into a T. It refuses unknown
// and repeated members, text that is not UTF-8 or that the database cannot hold
// (NUL), and anything after the object. Its errors are problems and speak of the
// request alone.
func decode[T any](c echo.Context) (T, error) {
	var into T
	body, err := readBody(c)
	if err != nil {
		return into, err
	}
	if err := checkMediaType(c.Request().Header); err != nil {
		return into, err
	}
	return into, unmarshal(body, &into)
}

// decodeOptional is decode for a route whose body may be left away; the T is
// then its zero value.
func decodeOptional[T any](c echo.Context) (T, error) {
	var into T
	body, err := readBody(c)
	if err != nil || len(body) == 0 {
		return into, err
	}
	if err := checkMediaType(c.Request().Header); err != nil {
		return into, err
	}
	return into, unmarshal(body, &into)
}

func readBody(c echo.Context) ([]byte, error) {
	body, err := io.ReadAll(c.Request().Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, bodyTooLarge(tooLarge.Limit)
	case err != nil:
		return nil, invalid("body", "The body did not arrive completely.").because(err)
	}
	return body, nil
}

func checkMediaType(header http.Header) error {
	mediaType, _, err := mime.ParseMediaType(header.Get(echo.HeaderContentType))
	if err != nil || mediaType != echo.MIMEApplicationJSON {
		return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Send the body as JSON, with Content-Type: application/json.")
	}
	if encoding := header.Get(echo.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Send the body as it is, without Content-Encoding.")
	}
	return nil
}

// unmarshal is the strict decoding of one JSON object.
func unmarshal(body []byte, into any) error {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); !bytes.HasPrefix(trimmed, []byte("{")) {
		return invalid("body", "The body must be a JSON object.")
	}
	if err := json.Unmarshal(body, into, wire); err != nil {
		return explain(err)
	}
	return refuseNUL(body)
}

// refuseNUL looks for U+0000 in any string or name. In JSON it can only stand
// there as an escape, so most bodies need no second reading.
func refuseNUL(body []byte) error {
	if !bytes.Contains(body, []byte(`\u0000`)) {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := dec.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return explain(err)
		case token.Kind() == '"' && strings.ContainsRune(token.String(), 0):
			return invalid(strings.ReplaceAll(dotted(dec.StackPointer()), "\x00", "�"),
				"Text must not contain the character U+0000.")
		}
	}
}

// explain says what is wrong with a body, without a word about Go.
func explain(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return invalid(dotted(syntactic.JSONPointer), "The member appears more than once.")
	case errors.As(err, &syntactic):
		return invalid(dotted(syntactic.JSONPointer),
			fmt.Sprintf("The body is not valid JSON (at byte %d).", syntactic.ByteOffset))
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return invalid(dotted(semantic.JSONPointer), "There is no such member.")
	case errors.As(err, &semantic):
		return invalid(dotted(semantic.JSONPointer), "The value must be "+expected(semantic.GoType)+".")
	}
	return invalid("body", "The body cannot be understood.").because(err)
}

// expected names what a field takes in the words of JSON.
func expected(t reflect.Type) string {
	switch {
	case t == nil:
		return "of another type"
	case t == reflect.TypeFor[time.Duration]():
		return "a whole number of milliseconds"
	case t == reflect.TypeFor[time.Time]():
		return "a time as in RFC 3339"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return expected(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number in range"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "of another type"
	}
}

// dotted writes a JSON pointer the way people name a field: `/parts/0/etag` as
// `parts.0.etag`; the whole body is `body`.
func dotted(p jsontext.Pointer) string {
	var names []string
	for name := range p.Tokens() {
		names = append(names, name)
	}
	if len(names) == 0 {
		return "body"
	}
	return strings.Join(names, ".")
}
