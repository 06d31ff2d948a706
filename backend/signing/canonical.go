// Package signing makes and checks MA2H signatures: canonical JSON (RFC 8785), digests, the six signed contexts, HMAC-SHA256 and Ed25519,
// freshness and replay. The package does no I/O and keeps no clock: the caller says what time it is.
package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"deskbell/backend/wire"
)

// Canonical writes raw in the form of RFC 8785: names sorted by UTF-16 code units, numbers as ECMAScript prints doubles, no white space.
// An integer beyond 2^53 becomes the double nearest to it, and -0 becomes 0. Whatever is not strict JSON has no canonical form and is
// refused.
func Canonical(raw []byte) ([]byte, error) {
	if err := wire.Check(raw, 0); err != nil {
		return nil, fmt.Errorf("no canonical form: %w", err)
	}
	c := canonizer{data: raw, out: make([]byte, 0, len(raw))}
	c.value()
	return c.out, nil
}

// Digest is the lowercase hexadecimal SHA-256 of the canonical form of raw.
func Digest(raw []byte) (string, error) {
	canonical, err := Canonical(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// canonizer rewrites a document that has passed wire.Check, so it trusts the grammar and never looks for its own end.
type canonizer struct {
	data []byte
	pos  int
	out  []byte
}

// next skips white space and returns the byte that follows it.
func (c *canonizer) next() byte {
	for strings.IndexByte(" \t\r\n", c.data[c.pos]) >= 0 {
		c.pos++
	}
	return c.data[c.pos]
}

func (c *canonizer) value() {
	switch c.next() {
	case '{':
		c.object()
	case '[':
		c.array()
	case '"':
		c.text()
	case 't', 'n':
		c.copy(4)
	case 'f':
		c.copy(5)
	default:
		start := c.pos
		for c.pos < len(c.data) && strings.IndexByte("+-.0123456789Ee", c.data[c.pos]) >= 0 {
			c.pos++
		}
		// wire.Check has proved that a finite double holds it.
		f, _ := strconv.ParseFloat(string(c.data[start:c.pos]), 64)
		c.out = appendNumber(c.out, f)
	}
}

func (c *canonizer) copy(n int) {
	c.out = append(c.out, c.data[c.pos:c.pos+n]...)
	c.pos += n
}

func (c *canonizer) array() {
	c.copy(1)
	for c.next() != ']' {
		c.value()
		if c.next() == ',' {
			c.copy(1)
		}
	}
	c.copy(1)
}

// member is where one member of an object stands in the output, before the object is put in order.
type member struct {
	name       string
	start, end int
}

func (c *canonizer) object() {
	c.copy(1)
	first := len(c.out)
	var members []member
	for c.next() != '}' {
		start := len(c.out)
		name := c.text()
		c.next()
		c.copy(1) // the colon
		c.value()
		members = append(members, member{name, start, len(c.out)})
		if c.next() == ',' {
			c.pos++
		}
	}
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	written := slices.Clone(c.out[first:])
	c.out = c.out[:first]
	for i, m := range members {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, written[m.start-first:m.end-first]...)
	}
	c.copy(1)
}

// text rewrites a string and returns what it says.
func (c *canonizer) text() string {
	start := c.pos
	for c.pos++; c.data[c.pos] != '"'; c.pos++ {
		if c.data[c.pos] == '\\' {
			c.pos++
		}
	}
	c.pos++
	s, _ := wire.String(c.data[start:c.pos])
	c.out = wire.AppendQuote(c.out, s)
	return s
}

// appendNumber prints f as ECMAScript's Number::toString does.
func appendNumber(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0') // also -0
	}
	if size := math.Abs(f); 1e-6 <= size && size < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	start := len(out)
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	// Go pads the exponent to two digits, ECMAScript does not.
	if n := len(out); n-start >= 4 && out[n-2] == '0' && (out[n-3] == '-' || out[n-3] == '+') {
		out[n-2] = out[n-1]
		out = out[:n-1]
	}
	return out
}

// compareUTF16 orders strings by UTF-16 code units. That is the order of code points, except that those beyond U+FFFF, written with
// surrogates (U+D800 and up), come before U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			if (ra > 0xffff) != (rb > 0xffff) {
				if ra > 0xffff {
					ra = 0xd800
				} else {
					rb = 0xd800
				}
			}
			return int(ra) - int(rb)
		}
		a, b = a[na:], b[nb:]
	}
	return len(a) - len(b)
}
