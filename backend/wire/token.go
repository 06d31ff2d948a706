package wire

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string and returns what it says: a part of the document where nothing is escaped, a copy otherwise.
func (s *scanner) text() ([]byte, error) {
	if s.pos >= len(s.data) || s.data[s.pos] != '"' {
		return nil, s.fail("a string must follow")
	}
	s.pos++
	start := s.pos
	var out []byte // nil until the first escape
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			text := s.data[start:s.pos]
			s.pos++
			if out != nil {
				return append(out, text...), nil
			}
			return text, nil
		case c == '\\':
			if out == nil {
				out = make([]byte, 0, s.pos-start+16)
			}
			out = append(out, s.data[start:s.pos]...)
			r, err := s.escape()
			if err != nil {
				return nil, err
			}
			out = utf8.AppendRune(out, r)
			start = s.pos
		case c < ' ':
			return nil, s.failAt(s.pos, "unescaped control character in a string")
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return nil, s.failAt(s.pos, "invalid UTF-8")
			}
			s.pos += size
		}
	}
	return nil, s.fail("")
}

// escape reads one escape, or the two that make a surrogate pair.
func (s *scanner) escape() (rune, error) {
	if s.pos+1 >= len(s.data) {
		return 0, s.failAt(len(s.data), "unexpected end of data")
	}
	c := s.data[s.pos+1]
	if c != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return 0, s.failAt(s.pos, "unknown escape in a string")
		}
		s.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	r := hex4(s.data[s.pos+2:])
	if r < 0 {
		return 0, s.failAt(s.pos, "\\u needs four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		s.pos += 6
		return r, nil
	}
	if rest := s.data[s.pos+6:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(rest[2:])); pair != utf8.RuneError {
			s.pos += 12
			return pair, nil
		}
	}
	return 0, s.failAt(s.pos, "lone surrogate in a string")
}

// hex4 reads four hexadecimal digits; -1 where there are none.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

func (s *scanner) number() error {
	start, exponent := s.pos, false
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return s.fail("a number needs a digit here")
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return s.fail("a number needs a digit here")
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		exponent = true
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return s.fail("a number needs a digit here")
		}
	}
	// Up to 300 characters without an exponent stay far below the largest double.
	if exponent || s.pos-start > 300 {
		if _, err := strconv.ParseFloat(string(s.data[start:s.pos]), 64); err != nil {
			return s.failAt(start, "a number too large for a double")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	return s.pos > start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
