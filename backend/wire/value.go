package wire

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Value decodes a document into maps, slices, strings, bools and nil, as strictly as Check reads it. A number is an int64 where it is
// written as an integer of at most 18 digits, a json.Number up to maxExact of them, and the nearest float64 otherwise, so that no text an
// outsider sends becomes a huge rational.
func Value(raw []byte) (any, error) {
	s := scanner{data: raw, depth: defaultDepth, unique: true}
	s.space()
	v, err := s.tree()
	if err != nil {
		return nil, err
	}
	return v, s.end()
}

func (s *scanner) tree() (any, error) {
	if s.pos >= len(s.data) {
		return nil, s.fail("")
	}
	switch c := s.data[s.pos]; c {
	case '{':
		object := map[string]any{}
		return object, s.object(func(name []byte) error {
			v, err := s.tree()
			object[string(name)] = v
			return err
		})
	case '[':
		array := []any{}
		err := s.array(func() error {
			v, err := s.tree()
			array = append(array, v)
			return err
		})
		return array, err
	case '"':
		text, err := s.text()
		return string(text), err
	default:
		start := s.pos
		if err := s.value(); err != nil {
			return nil, err
		}
		switch c {
		case 't', 'f':
			return c == 't', nil
		case 'n':
			return nil, nil
		}
		return number(string(s.data[start:s.pos])), nil
	}
}

// maxExact is how many digits of an integer are kept.
const maxExact = 100

// number converts the text of a number that has passed the scanner.
func number(text string) any {
	if len(text) <= 18 {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	if len(text) > 18 && len(text) <= maxExact && !strings.ContainsAny(text, ".eE") {
		return json.Number(text)
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
