package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// MaxDepth bounds the nesting of what comes in.
const MaxDepth = 64

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return WriteRaw(w, status, buf.Bytes())
}

// WriteRaw answers with JSON that is written already, byte for byte.
func WriteRaw(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller is gone if this fails, and there is nobody to tell
	return nil
}

// ReadBody reads the request's body and checks that it is strict JSON. An empty body is returned as it is.
// Errors: 422 invalid_field when it is larger than the route allows, 400 validation_error.
func ReadBody(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field",
			Message: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
	case err != nil:
		return nil, Errorf(http.StatusBadRequest, "validation_error", "the body could not be read whole")
	}
	if raw = bytes.Trim(raw, " \t\r\n"); len(raw) == 0 { // what JSON calls white space, and no more
		return nil, nil
	}
	if err := wire.Check(raw, MaxDepth); err != nil {
		return nil, badJSON(err)
	}
	return raw, nil
}

func badJSON(err error) *Error {
	e := &Error{Status: http.StatusBadRequest, Code: "validation_error", Message: "the body is not acceptable JSON: " + err.Error()}
	var syntax *wire.SyntaxError
	if errors.As(err, &syntax) {
		e.Details = []inbox.FieldError{{Pointer: syntax.Pointer, Message: syntax.Reason}}
	}
	return e
}

// Decode reads strict JSON into v by exact member names; members v does not know are passed over. An empty body is {}.
func Decode(r *http.Request, v any) error {
	raw, err := Object(r)
	if err != nil {
		return err
	}
	return Unmarshal(raw, v)
}

// Object is ReadBody for what is read by its members: an empty body is {}, and what is no object is refused, the null that
// JSON would read as nothing said included.
func Object(r *http.Request) ([]byte, error) {
	raw, err := ReadBody(r)
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		return []byte(`{}`), nil
	case raw[0] != '{':
		return nil, badShape("", "must be a JSON object")
	}
	return raw, nil
}

// DecodeKnown is Decode for what a person's program sends: a member that v does not know was meant to say something, and
// is refused by its name.
func DecodeKnown(r *http.Request, v any) error {
	raw, err := Object(r)
	if err != nil {
		return err
	}
	return unmarshal(raw, v, jsonv2.RejectUnknownMembers(true))
}

// OnlyKnown refuses a body, strict JSON or nil, that has other members than those named.
func OnlyKnown(raw []byte, names ...string) error {
	if raw == nil {
		return nil
	}
	members, err := wire.Members(raw)
	if err != nil {
		return badShape("", "must be a JSON object")
	}
	for _, m := range members {
		if !slices.Contains(names, m.Name) {
			return badShape("/"+escapePointer.Replace(m.Name), "is not a member of this request")
		}
	}
	return nil
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func badShape(pointer, msg string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "validation_error", Message: strings.TrimSpace(pointer + " " + msg),
		Details: []inbox.FieldError{{Pointer: pointer, Message: msg}}}
}

// Unmarshal is Decode on bytes that passed ReadBody.
func Unmarshal(raw []byte, v any) error { return unmarshal(raw, v) }

func unmarshal(raw []byte, v any, options ...jsonv2.Options) error {
	err := jsonv2.Unmarshal(raw, v, options...)
	if err == nil {
		return nil
	}
	var semantic *jsonv2.SemanticError
	switch {
	case !errors.As(err, &semantic):
		return &Error{Status: http.StatusBadRequest, Code: "validation_error", Message: "the body does not have the expected shape"}
	case errors.Is(semantic.Err, jsonv2.ErrUnknownName):
		return badShape(string(semantic.JSONPointer), "is not a member of this request")
	}
	return badShape(string(semantic.JSONPointer), "must not be a JSON "+kindName(byte(semantic.JSONKind)))
}

// Text is a string that a request may leave out and may not say null for, which a Go string would read as empty.
type Text string

// UnmarshalJSONFrom implements jsonv2.UnmarshalerFrom.
func (t *Text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if k := dec.PeekKind(); k != '"' {
		return &jsonv2.SemanticError{JSONKind: k, JSONPointer: dec.StackPointer()}
	}
	return jsonv2.UnmarshalDecode(dec, (*string)(t))
}

func kindName(k byte) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '[':
		return "array"
	case '{':
		return "object"
	}
	return "value of this kind"
}

// EditedArguments reads the edited member of an answer, {"arguments":{…}}; nil: it is absent, or says nothing of
// arguments because it is no object (a MA2H answer may carry such a word, and the hub does not listen to it).
func EditedArguments(edited []byte) ([]byte, error) {
	if len(edited) == 0 || edited[0] != '{' {
		return nil, nil
	}
	arguments, ok := wire.Get(edited, "arguments")
	if !ok || arguments[0] != '{' {
		return nil, inbox.Invalid("/edited/arguments", "must be an object of the new values by name")
	}
	return arguments, nil
}
