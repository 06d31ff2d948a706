package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Text is what a file says. Of a binary one, only what it is.
type Text struct {
	Text   string
	Binary bool
	Type   string
	Size   int64 // of the whole file, in bytes
}

// Lines are lines of a text, counted from 1, both included.
type Lines struct{ First, Last int }

// Read reads a file, whole or some lines of it. Errors: ErrTooLarge where it has more than MaxText bytes of text, or than
// can be looked through for its lines.
func (r *Root) Read(ctx context.Context, p string, lines *Lines) (Text, error) {
	p, err := Clean(p)
	if err != nil {
		return Text{}, err
	}
	f, size, err := r.file(p)
	if err != nil {
		return Text{}, err
	}
	defer f.Close() // it was only read
	out := Text{Type: typeOf(p), Size: size}
	in := bufio.NewReaderSize(&bounded{ctx, io.LimitReader(f, maxScan)}, sniff)
	head, err := in.Peek(sniff)
	if err != nil && !errors.Is(err, io.EOF) {
		return Text{}, reason(err)
	}
	if binary(head) {
		out.Binary, out.Type = true, binaryType(out.Type)
		return out, nil
	}
	switch {
	case lines == nil && size > MaxText, size > maxScan:
		return Text{}, ErrTooLarge
	case lines == nil:
		lines = &Lines{1, maxScan}
	}
	text, err := pick(in, *lines)
	if err != nil {
		return Text{}, err
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		out.Binary, out.Type = true, binaryType(out.Type)
		return out, nil
	}
	out.Text = string(text)
	return out, nil
}

// file opens a regular file. It is asked for without waiting, and looked at again when it is open: a name may come to
// mean a pipe or a device in between.
func (r *Root) file(p string) (*os.File, int64, error) {
	info, err := r.root.Stat(filepath.FromSlash(p))
	if err != nil {
		return nil, 0, reason(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, ErrNotFile
	}
	f, err := r.root.OpenFile(filepath.FromSlash(p), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, reason(err)
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(ErrNotFile, f.Close())
	}
	return f, info.Size(), nil
}

// pick returns some lines of a text, with their ends.
func pick(in *bufio.Reader, lines Lines) ([]byte, error) {
	var out []byte
	for n := 1; n <= lines.Last; {
		part, err := in.ReadSlice('\n')
		if n >= lines.First {
			if len(out)+len(part) > MaxText {
				return nil, ErrTooLarge
			}
			out = append(out, part...)
		}
		switch {
		case err == nil:
			n++
		case errors.Is(err, io.EOF):
			return out, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, reason(err)
		}
	}
	return out, nil
}

// bounded reads until its context ends.
type bounded struct {
	ctx context.Context
	in  io.Reader
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.in.Read(p)
}

// binary says whether a file that begins like this is no text.
func binary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 {
			return utf8.FullRune(head) // else the rest of it is beyond the head
		}
		head = head[n:]
	}
	return false
}

func binaryType(byName string) string {
	if strings.HasPrefix(byName, "text/") {
		return "application/octet-stream"
	}
	return byName
}

// textTypes are names of texts that are unknown elsewhere or mean something else there.
var textTypes = map[string]string{
	".md": "text/markdown", ".go": "text/x-go", ".ts": "text/typescript", ".tsx": "text/typescript", ".py": "text/x-python", ".rs": "text/x-rust", ".sh": "text/x-shellscript",
	".toml": "application/toml", ".yaml": "application/yaml", ".yml": "application/yaml", ".json": "application/json", ".js": "text/javascript", ".txt": "text/plain",
	".c": "text/x-c", ".h": "text/x-c", ".svelte": "text/plain", ".mod": "text/plain", ".sum": "text/plain", ".sql": "application/sql", "": "text/plain",
}

// typeOf guesses a file's media type by its name.
func typeOf(p string) string {
	ext := strings.ToLower(path.Ext(path.Base(p)))
	if t, ok := textTypes[ext]; ok {
		return t
	}
	if t, _, err := mime.ParseMediaType(mime.TypeByExtension(ext)); err == nil {
		return t
	}
	return "application/octet-stream"
}
