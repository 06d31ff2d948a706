// Package wire reads JSON strictly, before any dialect gives it a meaning. What it lets through means one thing to every reader: names are
// unique, text is Unicode, numbers are doubles. Raw bytes stay raw, so an agent's opaque blob leaves exactly as it came.
//
// The rules are those of I-JSON (RFC 7493) over the grammar of RFC 8259. The package does no I/O.
package wire

import "fmt"

// defaultDepth is the nesting Check allows when the caller names no limit, and the limit of every other function here.
const defaultDepth = 128

// SyntaxError says where a document stops being strict JSON, and why.
type SyntaxError struct {
	Pointer string // JSON Pointer (RFC 6901) of the value at fault; empty for the document itself
	Offset  int64  // byte offset at which the fault was noticed
	Reason  string // plain words, without a final stop
}

// Error gives the reason first, then the place.
func (e *SyntaxError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("%s (at byte %d)", e.Reason, e.Offset)
	}
	return fmt.Sprintf("%s at %s (byte %d)", e.Reason, e.Pointer, e.Offset)
}

// Check accepts exactly one JSON value nested at most maxDepth deep (defaultDepth if maxDepth is not positive). It refuses invalid UTF-8,
// lone surrogate escapes, a name used twice in one object, numbers that no finite double holds, and anything after the value. The error is
// a *SyntaxError.
func Check(raw []byte, maxDepth int) error {
	if maxDepth <= 0 {
		maxDepth = defaultDepth
	}
	s := scanner{data: raw, depth: maxDepth, unique: true}
	return s.document()
}

// document reads one value and the white space around it.
func (s *scanner) document() error {
	s.space()
	if err := s.value(); err != nil {
		return err
	}
	return s.end()
}

func (s *scanner) end() error {
	s.space()
	if s.pos < len(s.data) {
		return s.fail("unexpected data after the value")
	}
	return nil
}
