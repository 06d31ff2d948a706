package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

func (a *app) validateCommand() *cobra.Command {
	var schema string
	c := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a document against its schema",
		Long: "Checks a document (- is standard input) against its JSON Schema, and a message also against the rules that no schema\n" +
			"can say (option values that differ, a default that fits, …). Every fault is named by its JSON Pointer.\n" +
			"The schema follows from the document unless --schema names it.\n\nExit codes: 0 valid, 1 not valid, 2 bad usage.",
		Example: "  deskbell validate ask.json\n  generate-ask | deskbell validate - --json\n  deskbell validate reply.json --schema ma2h/response",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.validate(args[0], schema) },
	}
	c.Flags().StringVar(&schema, "schema", "", "check against this one: `NAME` is ma2h/message, ma2h/response, ma2h/inbound-message, …")
	return c
}

// readFile reads a file's content; - is standard input.
func (a *app) readFile(name string) ([]byte, error) {
	raw, err := []byte(nil), error(nil)
	if name == "-" {
		raw, err = io.ReadAll(a.in)
	} else {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, &exit{exitUsage, err}
	}
	return raw, nil
}

func (a *app) validate(file, schema string) error {
	raw, err := a.readFile(file)
	if err != nil {
		return err
	}
	set, err := schemas.Load()
	if err != nil {
		return err
	}
	if schema != "" && !strings.Contains(schema, "/") {
		schema = "ma2h/" + schema
	}
	var faults []inbox.FieldError
	if err := wire.Check(raw, 0); err != nil {
		faults = append(faults, syntaxFault(err))
	} else {
		pointer, inner := "", raw
		if schema == "" {
			if schema, pointer, inner = schemaOf(raw); schema == "" {
				return usagef("%s: cannot tell what kind of document this is; name its schema with --schema", file)
			}
		}
		if faults, err = faultsOf(set, schema, inner); err != nil {
			return &exit{exitUsage, err}
		}
		for i := range faults {
			faults[i].Pointer = pointer + faults[i].Pointer
		}
	}
	if a.json {
		err := a.printJSON(map[string]any{"file": file, "valid": len(faults) == 0, "schema": schema, "errors": append([]inbox.FieldError{}, faults...)})
		return errors.Join(err, invalidIf(len(faults) > 0))
	}
	if len(faults) == 0 {
		a.tell("%s: valid (%s)", file, schema)
		return nil
	}
	for _, f := range faults {
		pointer := f.Pointer
		if pointer == "" {
			pointer = "(the document)"
		}
		a.tell("%s: %s", pointer, f.Message)
	}
	return &exit{code: exitFailure}
}

func invalidIf(bad bool) error {
	if bad {
		return &exit{code: exitFailure}
	}
	return nil
}

func syntaxFault(err error) inbox.FieldError {
	var syntax *wire.SyntaxError
	if errors.As(err, &syntax) {
		return inbox.FieldError{Pointer: syntax.Pointer, Message: fmt.Sprintf("%s (at byte %d)", syntax.Reason, syntax.Offset)}
	}
	return inbox.FieldError{Message: err.Error()}
}

// faultsOf is what is wrong with a document; the error says that there is no such schema.
func faultsOf(set *schemas.Set, schema string, raw []byte) ([]inbox.FieldError, error) {
	fields, err := set.Validate(schema, raw)
	if err != nil {
		return nil, err
	}
	var faults []inbox.FieldError
	for _, f := range fields {
		faults = append(faults, inbox.FieldError{Pointer: f.Pointer, Message: f.Message})
	}
	if len(faults) == 0 && schema == "ma2h/message" {
		faults = backend.CheckMessage(set, raw)
	}
	return faults, nil
}

// row returns what raw is as a row of a mailbox; false when it is none.
func row(raw []byte) (client.Row, bool) {
	r, err := client.ParseRow(raw)
	_, signed := wire.Get(raw, "signature")
	return r, err == nil && signed && bytes.HasPrefix(r.Object, []byte("{"))
}

// schemaOf tells a document's schema from its members. The document may be inside another one, at pointer.
func schemaOf(raw []byte) (schema, pointer string, inner []byte) {
	if r, ok := row(raw); ok {
		return "ma2h/inbound-message", "/" + r.Kind, r.Object
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return "", "", raw
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := m[n]; !ok {
				return false
			}
		}
		return true
	}
	kind, _ := wire.String(m["type"])
	switch {
	case kind == "directive", kind == "receipt":
		schema = "inbound-message"
	case kind == "ack":
		schema = "ack"
	case has("type", "id", "status"):
		schema = "get-message"
	case has("type", "id", "from", "to"):
		schema = "inbound-message"
	case has("type"):
		schema = "message"
	case has("resolution", "in_reply_to"):
		schema = "response"
	case has("poll_url"):
		schema = "submit-ack"
	case has("sessions"):
		schema = "session-list"
	case has("session"):
		schema = "session-envelope"
	case has("agent_id", "freshness_seconds"):
		schema = "presence"
	case has("id", "agent_id", "state"):
		schema = "session"
	case has("resolution"):
		schema = "resolve-request"
	case has("max_body_bytes"), has("auth_schemes"), has("signature_algs"), has("retention_days"):
		schema = "capability"
	case has("ma2h_version", "agent"), has("ma2h_version", "title"):
		schema = "message"
	case has("ttl_seconds"):
		schema = "session-register"
	default:
		return "", "", raw
	}
	return "ma2h/" + schema, "", raw
}
