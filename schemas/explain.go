package schemas

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxErrors bounds what one document is told; the rest follows when these are mended.
const maxErrors = 16

// explain flattens a failed validation into field errors: the deepest cause of each branch that counts, without repeats, by pointer.
func explain(failed *jsonschema.ValidationError) []FieldError {
	found := leaves(failed)
	slices.SortFunc(found, func(a, b FieldError) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Message, b.Message))
	})
	found = slices.Compact(found)
	return found[:min(len(found), maxErrors)]
}

func leaves(e *jsonschema.ValidationError) []FieldError {
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		if len(e.Causes) > 0 {
			return alternative(e)
		}
	case *kind.Contains, *kind.MinContains, *kind.PropertyNames:
		return own(e) // what each element or name lacks is noise
	}
	if len(e.Causes) == 0 {
		return own(e)
	}
	var found []FieldError
	for _, cause := range e.Causes {
		found = append(found, leaves(cause)...)
	}
	return found
}

// alternative picks the branch the document meant and reports that one only. A branch whose `type` or `kind` is another is out; one of
// another JSON type comes last; of those that are left the one with the fewest faults is the nearest.
func alternative(e *jsonschema.ValidationError) []FieldError {
	base := pointer(e.InstanceLocation)
	best, bestRank := []FieldError(nil), 0
	var want []any
	for _, branch := range e.Causes {
		found, rank := leaves(branch), 0
		if c := discriminator(branch, base); c != nil {
			if c, ok := c.ErrorKind.(*kind.Const); ok {
				want = append(want, c.Want)
			}
			rank = 2000
		} else if wrongType(branch, base) {
			rank = 1000
		}
		rank += len(found)
		if best == nil || rank < bestRank {
			best, bestRank = found, rank
		}
	}
	if bestRank < 2000 || len(want) == 0 {
		return best
	}
	for _, f := range best {
		if strings.HasSuffix(f.Pointer, "/type") || strings.HasSuffix(f.Pointer, "/kind") {
			if f.Message == isRequired {
				return []FieldError{f}
			}
			return []FieldError{{f.Pointer, oneOf(want)}}
		}
	}
	return best
}

// discriminator finds the failure that says a branch is about another kind of document.
func discriminator(e *jsonschema.ValidationError, base string) *jsonschema.ValidationError {
	at := pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Const, *kind.Enum:
		if at == base+"/type" || at == base+"/kind" {
			return e
		}
	case *kind.Required:
		if at == base && (slices.Contains(k.Missing, "type") || slices.Contains(k.Missing, "kind")) {
			return e
		}
	}
	for _, cause := range e.Causes {
		if c := discriminator(cause, base); c != nil {
			return c
		}
	}
	return nil
}

// wrongType tells whether a branch fails because the value itself is of another JSON type.
func wrongType(e *jsonschema.ValidationError, base string) bool {
	if pointer(e.InstanceLocation) == base {
		switch k := e.ErrorKind.(type) {
		case *kind.Type:
			return true
		case *kind.Const:
			return fmt.Sprintf("%T", k.Got) != fmt.Sprintf("%T", k.Want)
		}
	}
	return slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return wrongType(c, base) })
}

const isRequired = "is required"

// own says in plain words what one keyword found.
func own(e *jsonschema.ValidationError) []FieldError {
	at := pointer(e.InstanceLocation)
	children := func(names []string, message string) []FieldError {
		found := make([]FieldError, 0, len(names))
		for _, n := range names {
			found = append(found, FieldError{at + pointer([]string{n}), message})
		}
		return found
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return children(k.Missing, isRequired)
	case *kind.DependentRequired:
		return children(k.Missing, "is required beside "+k.Prop)
	case *kind.Dependency:
		return children(k.Missing, "is required beside "+k.Prop)
	case *kind.AdditionalProperties:
		return children(k.Properties, "is not a known field")
	case *kind.PropertyNames:
		return children([]string{k.Property}, "is not an allowed name")
	}
	return []FieldError{{at, words(e.ErrorKind)}}
}

// words is own for what concerns the value itself.
func words(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return mustBe(k.Want)
	case *kind.Enum:
		return oneOf(k.Want)
	case *kind.Const:
		return oneOf([]any{k.Want})
	case *kind.FalseSchema, *kind.Not, *kind.AdditionalItems:
		return "is not allowed here"
	case *kind.Pattern:
		return patternWords(k.Want)
	case *kind.Format:
		return formatWords(k.Want)
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return "must have at least " + count(k.Want, "character")
	case *kind.MaxLength:
		return "must have at most " + count(k.Want, "character")
	case *kind.MinItems:
		return "must have at least " + count(k.Want, "entry")
	case *kind.MaxItems:
		return "must have at most " + count(k.Want, "entry")
	case *kind.MinProperties:
		return "must have at least " + count(k.Want, "field")
	case *kind.MaxProperties:
		return "must have at most " + count(k.Want, "field")
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat an entry (%d and %d are the same)", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains, *kind.MinContains:
		return "lacks an entry it must have"
	case *kind.MaxContains:
		return "has too many entries of one kind"
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *kind.OneOf:
		return "fits more than one of the forms it may take"
	case *kind.RefCycle:
		return "cannot be checked: the schema refers to itself"
	default:
		return clip(k.LocalizedString(message.NewPrinter(language.English)))
	}
}

func mustBe(types []string) string {
	named := make([]string, 0, len(types))
	orNull := false
	for _, t := range types {
		switch t {
		case "null":
			orNull = true
		case "array":
			named = append(named, "a list")
		case "object", "integer":
			named = append(named, "an "+t)
		default:
			named = append(named, "a "+t)
		}
	}
	if orNull {
		named = append(named, "null")
	}
	return "must be " + strings.Join(named, " or ")
}

// oneOf lists the values allowed, each once.
func oneOf(want []any) string {
	var shown []string
	for _, w := range want {
		text := fmt.Sprint(w)
		if s, ok := w.(string); ok {
			text = strconv.Quote(s)
		}
		if text = clip(text); !slices.Contains(shown, text) {
			shown = append(shown, text)
		}
	}
	if len(shown) > 12 {
		shown = append(shown[:12], "…")
	}
	if len(shown) == 1 {
		return "must be " + shown[0]
	}
	return "must be one of " + strings.Join(shown, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + strings.TrimSuffix(strings.Replace(noun+"s", "ys", "ies", 1), "")
}

func decimal(r *big.Rat) string {
	const most = 40 // digits that a reader could compare
	if places, exact := r.FloatPrec(); exact && places <= most && r.Num().BitLen() < 4*most {
		return r.FloatString(places)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// clip keeps an agent's own words in a message short.
func clip(s string) string {
	const limit = 80
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// pointer writes a location as a JSON Pointer.
func pointer(location []string) string {
	var b strings.Builder
	for _, step := range location {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1"))
	}
	return b.String()
}
