package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// scanner walks a document once, recursively. Pointers cost nothing until something fails: each level adds its own step on the way out.
type scanner struct {
	data   []byte
	pos    int
	depth  int      // levels still allowed
	unique bool     // refuse repeated names
	names  [][]byte // names of the objects being read, innermost last
}

// manyNames is the object size from which a set replaces comparing every pair of names.
const manyNames = 16

func (s *scanner) fail(reason string) *SyntaxError {
	if s.pos >= len(s.data) {
		reason = "unexpected end of data"
	}
	return s.failAt(s.pos, reason)
}

func (s *scanner) failAt(pos int, reason string) *SyntaxError {
	return &SyntaxError{Offset: int64(pos), Reason: reason}
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// value returns a *SyntaxError, or nil, with the position after the value.
func (s *scanner) value() error {
	if s.pos >= len(s.data) {
		return s.fail("")
	}
	switch c := s.data[s.pos]; c {
	case '{':
		return s.object(nil)
	case '[':
		return s.array(nil)
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		if c == '-' || isDigit(c) {
			return s.number()
		}
		return s.fail("unexpected character")
	}
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		return s.failAt(s.pos, "unknown word")
	}
	s.pos += len(w)
	return nil
}

// object reads an object. visit, if not nil, is called where each value starts and has to read it.
func (s *scanner) object(visit func(name []byte) error) error {
	if s.depth == 0 {
		return s.failAt(s.pos, "nested too deeply")
	}
	s.depth--
	s.pos++
	first := len(s.names)
	var seen map[string]struct{}
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == '}' {
		s.pos++
		s.depth++
		return nil
	}
	for {
		start := s.pos
		if s.pos < len(s.data) && s.data[s.pos] != '"' {
			return s.fail("a member name must be a string")
		}
		name, err := s.text()
		if err != nil {
			return err
		}
		if s.unique {
			if seen, err = s.claim(name, first, seen); err != nil {
				err.(*SyntaxError).Offset = int64(start)
				return err
			}
		}
		s.space()
		if s.pos >= len(s.data) || s.data[s.pos] != ':' {
			return s.fail("a colon must follow a member name")
		}
		s.pos++
		s.space()
		if visit == nil {
			err = s.value()
		} else {
			err = visit(name)
		}
		if err != nil {
			return under(err, string(name))
		}
		s.space()
		if s.pos >= len(s.data) {
			return s.fail("")
		}
		switch s.data[s.pos] {
		case ',':
			s.pos++
			s.space()
		case '}':
			s.pos++
			s.depth++
			s.names = s.names[:first]
			return nil
		default:
			return s.fail("a comma or a closing brace must follow a member")
		}
	}
}

// claim notes a name of the object whose names start at first, and refuses one already noted.
func (s *scanner) claim(name []byte, first int, seen map[string]struct{}) (map[string]struct{}, error) {
	mine := s.names[first:]
	repeated := false
	if seen != nil {
		_, repeated = seen[string(name)]
	} else {
		for _, n := range mine {
			if bytes.Equal(n, name) {
				repeated = true
				break
			}
		}
	}
	if repeated {
		return seen, under(s.failAt(0, "member name used twice"), string(name))
	}
	s.names = append(s.names, name)
	if seen != nil {
		seen[string(name)] = struct{}{}
	} else if len(mine)+1 >= manyNames {
		seen = make(map[string]struct{}, 4*manyNames)
		for _, n := range s.names[first:] {
			seen[string(n)] = struct{}{}
		}
	}
	return seen, nil
}

// array reads an array. visit is as for object.
func (s *scanner) array(visit func() error) error {
	if s.depth == 0 {
		return s.failAt(s.pos, "nested too deeply")
	}
	s.depth--
	s.pos++
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == ']' {
		s.pos++
		s.depth++
		return nil
	}
	for i := 0; ; i++ {
		var err error
		if visit == nil {
			err = s.value()
		} else {
			err = visit()
		}
		if err != nil {
			return under(err, strconv.Itoa(i))
		}
		s.space()
		if s.pos >= len(s.data) {
			return s.fail("")
		}
		switch s.data[s.pos] {
		case ',':
			s.pos++
			s.space()
		case ']':
			s.pos++
			s.depth++
			return nil
		default:
			return s.fail("a comma or a closing bracket must follow an element")
		}
	}
}

// under puts a step in front of a syntax error's pointer; any other error passes.
func under(err error, step string) error {
	e, ok := err.(*SyntaxError)
	if !ok {
		return err
	}
	e.Pointer = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step) + e.Pointer
	return e
}
