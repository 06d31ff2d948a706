package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Member is one member of an object: its name as text, its value as the bytes that stood in the document.
type Member struct {
	Name  string
	Value []byte
}

// Members lists the members of an object in their order. Values are parts of raw, not copies: inner white space, digits beyond 2^53 and
// the order of their own members survive. The whole document is checked as Check does.
func Members(raw []byte) ([]Member, error) {
	s := scanner{data: raw, depth: defaultDepth, unique: true}
	members := make([]Member, 0, 16)
	err := s.only('{', func() error {
		return s.object(func(name []byte) error {
			start := s.pos
			err := s.value()
			members = append(members, Member{Name: string(name), Value: s.data[start:s.pos]})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return members, nil
}

// Elements lists the elements of an array, raw and checked as the values of Members are.
func Elements(raw []byte) ([][]byte, error) {
	s := scanner{data: raw, depth: defaultDepth, unique: true}
	var elements [][]byte
	err := s.only('[', func() error {
		return s.array(func() error {
			start := s.pos
			err := s.value()
			elements = append(elements, s.data[start:s.pos])
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return elements, nil
}

// only reads a document whose one value starts with opening.
func (s *scanner) only(opening byte, read func() error) error {
	s.space()
	if s.pos >= len(s.data) || s.data[s.pos] != opening {
		kind := "an object"
		if opening == '[' {
			kind = "an array"
		}
		return s.fail(kind + " must stand here")
	}
	if err := read(); err != nil {
		return err
	}
	return s.end()
}

// errFound ends a reading that has seen enough.
var errFound = errors.New("found")

// Get returns the raw value of one member, a part of raw. It reads no further than it must, so raw should have passed Check; false means
// that raw is not an object or has no such member.
func Get(raw []byte, name string) ([]byte, bool) {
	s := scanner{data: raw, depth: defaultDepth}
	s.space()
	if s.pos >= len(s.data) || s.data[s.pos] != '{' {
		return nil, false
	}
	var found []byte
	err := s.object(func(n []byte) error {
		start := s.pos
		if err := s.value(); err != nil {
			return err
		}
		if string(n) != name {
			return nil
		}
		found = s.data[start:s.pos]
		return errFound
	})
	return found, err == errFound
}

// Pick returns those members of an object that it has, in the order of names.
func Pick(object []byte, names ...string) []Member {
	var m []Member
	for _, name := range names {
		if v, ok := Get(object, name); ok {
			m = append(m, Member{Name: name, Value: v})
		}
	}
	return m
}

// String returns the text of a raw JSON string; false for anything else.
func String(raw []byte) (string, bool) {
	s := scanner{data: raw}
	s.space()
	text, err := s.text()
	if err != nil {
		return "", false
	}
	s.space()
	return string(text), s.pos == len(raw)
}

// Text is the text of a member of an object; empty when there is none, or it is no text.
func Text(object []byte, name string) string {
	raw, _ := Get(object, name)
	text, _ := String(raw)
	return text
}

// Compose writes an object with the members in the order given and their values verbatim. A member without a value becomes null.
func Compose(members []Member) []byte {
	size := 2
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + 8
	}
	out := append(make([]byte, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(AppendQuote(out, m.Name), ':')
		if len(m.Value) == 0 {
			out = append(out, "null"...)
		} else {
			out = append(out, m.Value...)
		}
	}
	return append(out, '}')
}

// Quote writes s as a JSON string: quotes, backslashes and control characters are escaped and nothing else, which is also the form RFC 8785
// asks for. Bytes that are not UTF-8 become U+FFFD.
func Quote(s string) []byte { return AppendQuote(make([]byte, 0, len(s)+2), s) }

// AppendQuote appends Quote(s) to out.
func AppendQuote(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				out = append(append(out, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			out = append(out, s[start:i]...)
			if j := strings.IndexByte("\"\\\b\f\n\r\t", c); j >= 0 {
				out = append(out, '\\', `"\bfnrt`[j])
			} else {
				out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			start = i + 1
		}
		i++
	}
	return append(append(out, s[start:]...), '"')
}

// Without returns raw, an object, without the members at the given paths: "name" for a member, "name.inner" for a member of a member that
// is itself an object. A path that leads nowhere removes nothing. What stays keeps its order and its raw values; white space around the
// removed levels goes.
func Without(raw []byte, paths ...string) ([]byte, error) {
	members, err := Members(raw)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		outer, inner, nested := strings.Cut(path, ".")
		i := slices.IndexFunc(members, func(m Member) bool { return m.Name == outer })
		switch {
		case i < 0:
		case !nested:
			members = slices.Delete(members, i, i+1)
		case bytes.HasPrefix(members[i].Value, []byte("{")):
			if strings.Contains(inner, ".") {
				return nil, fmt.Errorf("path %q is deeper than two levels", path)
			}
			if members[i].Value, err = Without(members[i].Value, inner); err != nil {
				return nil, under(err, outer)
			}
		}
	}
	return Compose(members), nil
}

// Marshal is v as JSON, each character as it is: what agents say is shown to people, and '>' is no "\u003e" to them.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
