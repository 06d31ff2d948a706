package schemas

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"deskbell/backend/wire"
)

// What an agent's schema may cost. The unfolded size counts every subschema once for each place it is used from.
const (
	maxAnswerSchema = 64 << 10 // bytes
	maxAnswerDepth  = 32
	maxUnfolded     = 4000
	maxPatterns     = 20_000   // instructions of all patterns together
	maxWork         = 64 << 20 // parts of the schema times bytes of the answer
)

// Answer is an agent's own schema for the answer to an input ask, compiled. It is safe for concurrent use.
type Answer struct {
	schema *jsonschema.Schema
	size   int // what checking one byte may cost
}

// CompileAnswer compiles a schema an agent supplied, or says why it will not. It fetches nothing; references stay inside the schema, lead
// nowhere in circles and do not multiply beyond a bound, so that checking an answer is quick whatever the schema. Patterns are Go's (RE2).
func CompileAnswer(schema []byte) (*Answer, error) {
	if len(schema) > maxAnswerSchema {
		return nil, fmt.Errorf("schema is larger than %d KiB", maxAnswerSchema>>10)
	}
	if err := wire.Check(schema, maxAnswerDepth); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	doc, err := wire.Value(schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("schema must be an object")
	}
	if err := dialect(object); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	size, err := bound(doc)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	// The name is only a base for references; nothing is looked up under it.
	const name = "answer:schema"
	compiler, patterns := newCompiler(), patternBudget{left: maxPatterns}
	compiler.UseRegexpEngine(patterns.compile)
	if err := compiler.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("schema does not compile: %w", plainCause(err))
	}
	return &Answer{compiled, size + maxPatterns - patterns.left}, nil
}

// dialect takes the schema's own name off, which only serves references from elsewhere, and refuses drafts whose keywords mean other things.
func dialect(schema map[string]any) error {
	delete(schema, "$id")
	if draft, ok := schema["$schema"]; ok {
		name, _ := draft.(string)
		switch strings.TrimSuffix(name, "#") {
		case "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
			"http://json-schema.org/draft-07/schema":
		default:
			return fmt.Errorf("$schema %s is not supported", clip(fmt.Sprint(draft)))
		}
	}
	return nil
}

// patternBudget compiles patterns until their programs together grow too large. A short pattern can stand for a very long program.
type patternBudget struct{ left int }

func (b *patternBudget) compile(pattern string) (jsonschema.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if b.left -= len(program.Inst); b.left < 0 {
		return nil, errors.New("the patterns are too complex together")
	}
	return regexp.Compile(pattern)
}

// Validate checks a value against the schema. The caller bounds the value's size; a value too large for so complex a schema is refused.
func (a *Answer) Validate(value []byte) []FieldError {
	if a.size*len(value) > maxWork {
		return []FieldError{{Message: "is too large for its schema to be checked"}}
	}
	v, err := wire.Value(value)
	if err != nil {
		return []FieldError{{Message: "is not JSON: " + err.Error()}}
	}
	return check(a.schema, v)
}

// plainCause shortens the library's report on a schema that breaks the rules of schemas.
func plainCause(err error) error {
	var broken *jsonschema.SchemaValidationError
	if !errors.As(err, &broken) {
		return err
	}
	var failed *jsonschema.ValidationError
	if !errors.As(broken.Err, &failed) {
		return broken.Err
	}
	why := explain(failed)
	switch {
	case len(why) == 0:
		return broken.Err
	case strings.HasSuffix(why[0].Message, "format regex"): // it may well be one elsewhere
		return fmt.Errorf("%s is no pattern this hub can check: look-around, references back and the like are not supported (RE2)", why[0].Pointer)
	}
	return fmt.Errorf("%s %s", why[0].Pointer, why[0].Message)
}

// Answerable says why nobody could answer an input ask with this schema, or nil (MA2H 0.6 §5.2): it must be an object, a `type` it has must
// admit an object, and `properties` must name at least one. Whether any answer satisfies it is another question.
func Answerable(schema []byte) error {
	doc, err := wire.Value(schema)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return errors.New("schema must be an object")
	}
	if t, ok := object["type"]; ok && !admitsObject(t) {
		return errors.New(`the schema's type must be "object", or a list of types with "object" among them`)
	}
	properties, ok := object["properties"].(map[string]any)
	if !ok || len(properties) == 0 {
		return errors.New("the schema's properties must name at least one field")
	}
	return nil
}

// admitsObject reads a `type` keyword: the word itself, or a list of distinct type names that has it.
func admitsObject(t any) bool {
	list, ok := t.([]any)
	if !ok {
		return t == "object"
	}
	seen := map[string]bool{}
	for _, entry := range list {
		name, _ := entry.(string)
		switch name {
		case "null", "boolean", "object", "array", "number", "string", "integer":
		default:
			return false
		}
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return seen["object"]
}
