package pirpc

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// fields are an object's members by name. Pi and what resembles it spell some names in several ways, so every reading
// takes the names in the order of preference.
type fields map[string]json.RawMessage

// object reads a JSON object; nil for anything else.
func object(raw []byte) fields {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var f fields
	if json.Unmarshal(raw, &f) != nil {
		return nil
	}
	return f
}

// array reads a JSON array; nil for anything else.
func array(raw []byte) []json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	var a []json.RawMessage
	if json.Unmarshal(raw, &a) != nil {
		return nil
	}
	return a
}

// raw is the first member of those that is there and not null.
func (f fields) raw(names ...string) json.RawMessage {
	for _, n := range names {
		if v := f[n]; len(v) > 0 && string(v) != "null" {
			return v
		}
	}
	return nil
}

func (f fields) has(name string) bool { return f.raw(name) != nil }

// text is a member that is a string; "" for any other.
func (f fields) text(names ...string) string { return str(f.raw(names...)) }

func str(raw []byte) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func (f fields) object(names ...string) fields           { return object(f.raw(names...)) }
func (f fields) array(names ...string) []json.RawMessage { return array(f.raw(names...)) }
func (f fields) bool(names ...string) bool               { return string(f.raw(names...)) == "true" }
func (f fields) int(names ...string) int {
	return int(max(min(f.num(names...), math.MaxInt32), math.MinInt32))
}
func (f fields) duration(names ...string) time.Duration { return millis(f.num(names...)) }

// num is a member that is a finite number, or the text of one; 0 for any other.
func (f fields) num(names ...string) float64 {
	n, err := strconv.ParseFloat(strings.Trim(string(f.raw(names...)), `"`), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// millis is a time in milliseconds as a duration; what is negative, or longer than a year, is none.
func millis(ms float64) time.Duration {
	if ms <= 0 || ms > 366*24*3600*1000 {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// texts is an array's strings.
func (f fields) texts(name string, most int) []string {
	out := []string{}
	for _, raw := range f.array(name) {
		if len(out) == most {
			break
		}
		out = append(out, clip(str(raw), maxLabel))
	}
	return out
}

// said is an error as text: a string, an object's message, or the JSON it is.
func said(raw json.RawMessage) string {
	if s := str(raw); s != "" {
		return s
	}
	if s := object(raw).text("message", "error"); s != "" {
		return s
	}
	return string(raw)
}

// idKey is what an id is looked up by: 7 and "7" are the same one.
func idKey(raw json.RawMessage) string {
	if s := str(raw); s != "" {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}

// snake is a name in lower case with underscores, so that setStatus and set_status are one.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
