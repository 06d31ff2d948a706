package pirpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the largest record that is read, in bytes, unless a Reader is told otherwise.
const MaxLine = 64 << 20

// TooLargeError: a record was larger than the reader takes. It was passed over; what follows it can be read.
type TooLargeError struct{ Size int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a record of %d bytes is too large and was left out", e.Size)
}

// Reader cuts a stream into records at LF and at nothing else: U+2028, U+2029, NEL and form feeds are text. A CR before
// the LF is dropped. Bytes are not decoded before they are cut, so a letter may come in two pieces.
type Reader struct {
	r   *bufio.Reader
	max int64
}

// NewReader reads r. max bounds a record, in bytes; 0 is MaxLine.
func NewReader(r io.Reader, max int64) *Reader {
	if max <= 0 {
		max = MaxLine
	}
	return &Reader{bufio.NewReaderSize(r, 64<<10), max}
}

// Read returns the next record that is not empty, without its end; the slice is the caller's. The last record needs no
// end. Errors: *TooLargeError, after which Read goes on; io.EOF; whatever reading fails with.
func (r *Reader) Read() ([]byte, error) {
	for {
		line, err := r.line()
		var large *TooLargeError
		if errors.As(err, &large) {
			return nil, err
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads to the next LF, which is not returned. What came before an error comes with it.
func (r *Reader) line() ([]byte, error) {
	var line []byte
	size := int64(0)
	for {
		part, err := r.r.ReadSlice('\n')
		size += int64(len(part))
		if size <= r.max+1 {
			line = append(line, part...)
		} else {
			line = nil // what is too large is not kept while it is passed over
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil:
			size--
			line = bytes.TrimSuffix(line, []byte{'\n'})
		}
		if size > r.max {
			return nil, &TooLargeError{size}
		}
		return line, err
	}
}
