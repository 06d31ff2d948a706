// Package schemas holds the JSON Schemas of the wire and validates documents against them, with errors a person can act on.
package schemas

// FieldError says what is wrong with one field, named by its JSON Pointer; an empty pointer is the document itself.
type FieldError struct{ Pointer, Message string }

// Set is every schema of the hub, compiled. It is safe for concurrent use.
type Set struct{}

// Load compiles the embedded schemas.
func Load() (*Set, error) { return &Set{}, nil }

// Validate checks raw against the schema called name, such as "ma2h/message". The field errors say what is wrong with the document; the
// error says that there is no such schema or that raw is not JSON.
func (s *Set) Validate(name string, raw []byte) ([]FieldError, error) { return nil, nil }

// Answer is an agent's own schema for the answer to an input ask, compiled.
type Answer struct{}

// CompileAnswer compiles a schema an agent supplied.
func CompileAnswer(schema []byte) (*Answer, error) { return &Answer{}, nil }

// Validate checks the answer value.
func (a *Answer) Validate(value []byte) []FieldError { return nil }

// Answerable refuses a schema that admits no object or names no property to fill in.
func Answerable(schema []byte) error { return nil }
