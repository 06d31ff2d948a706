package gate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// sameValue says whether two documents are the same value: members in any order, and numbers by their digits. Their
// canonical form rounds numbers, so it cannot tell long ones apart.
//
// Where rounding alone makes them the same it cannot be told: programs differ in how they read such numbers.
func sameValue(raw []byte, value string) fit {
	want, err := signing.Canonical([]byte(value))
	if err != nil {
		return no
	}
	is, err := signing.Canonical(raw)
	switch {
	case err != nil:
		return untold
	case !bytes.Equal(is, want):
		return no
	case !sameDigits(raw, []byte(value)):
		return untold
	}
	return yes
}

// sameDigits compares the numbers of two documents that are the same but for what rounding hides.
func sameDigits(a, b []byte) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	switch a[0] {
	case '{':
		members, err := wire.Members(a)
		if err != nil {
			return false
		}
		for _, m := range members {
			if other, ok := wire.Get(b, m.Name); !ok || !sameDigits(m.Value, other) {
				return false
			}
		}
	case '[':
		first, err := wire.Elements(a)
		second, err2 := wire.Elements(b)
		if err != nil || err2 != nil || len(first) != len(second) {
			return false
		}
		for i := range first {
			if !sameDigits(first[i], second[i]) {
				return false
			}
		}
	case '"', 't', 'f', 'n':
	default:
		return decimal(string(a)) == decimal(string(b))
	}
	return true
}

// Numbers are the numbers of a document to their last digit, by the names of its members and in the order of its lists:
// two documents of one canonical form that have the same are the same.
func Numbers(raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil
	}
	var out []byte
	switch raw[0] {
	case '{':
		members, err := wire.Members(raw)
		if err != nil {
			return nil
		}
		slices.SortFunc(members, func(a, b wire.Member) int { return strings.Compare(a.Name, b.Name) })
		for _, m := range members {
			out = append(out, Numbers(m.Value)...)
		}
	case '[':
		elements, err := wire.Elements(raw)
		if err != nil {
			return nil
		}
		for _, e := range elements {
			out = append(out, Numbers(e)...)
		}
	case '"', 't', 'f', 'n':
	default:
		d := decimal(string(raw))
		out = fmt.Appendf(nil, "%t %s %d\n", d.negative, d.digits, d.point)
	}
	return out
}

// digits are a number without what can be written otherwise: its digits from the first to the last that is not 0, and where
// the point stands from their beginning. A zero has none.
type digits struct {
	negative bool
	digits   string
	point    int
}

// maxExponent bounds how far apart digits and point may be. A double reaches not as far.
const maxExponent = 10_000

// decimal takes a number of JSON apart.
func decimal(text string) digits {
	var d digits
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	power := smallInt(exponent)
	if power == maxExponent || power == -maxExponent {
		return digits{negative: d.negative, digits: text} // as it is written, or not at all
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	d.digits = strings.TrimLeft(all, "0")
	d.point = len(whole) - (len(all) - len(d.digits)) + power
	d.digits = strings.TrimRight(d.digits, "0")
	if d.digits == "" {
		return digits{}
	}
	return d
}

// smallInt reads an exponent; one beyond maxExponent is that.
func smallInt(text string) int {
	text, negative := strings.CutPrefix(text, "-")
	n := 0
	for _, c := range strings.TrimPrefix(text, "+") {
		n = min(n*10+int(c-'0'), maxExponent)
	}
	if negative {
		return -n
	}
	return n
}
