package pirpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"deskbell/backend/brief"
	"deskbell/backend/wire"
)

// The bounds of what is kept of one row, in bytes. What is cut is said to be cut.
const (
	maxText    = 256 << 10 // of one block
	maxImage   = 4 << 20   // of one image, as base64
	maxArgs    = 256 << 10
	maxRaw     = 16 << 10
	maxLabel   = 4 << 10 // titles, names, options
	maxBlocks  = 500
	maxRowText = 4 << 20  // of all blocks together
	maxRowData = 16 << 20 // of all images together
	maxNested  = 8        // contents within contents
)

// Text is text that grows by pieces. In JSON it is a string.
type Text []byte

// MarshalText implements encoding.TextMarshaler.
func (t Text) MarshalText() ([]byte, error) {
	return []byte(strings.ToValidUTF8(string(t), "\uFFFD")), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Text) UnmarshalText(b []byte) error { *t = append(Text{}, b...); return nil }

// BlockKind is what a block holds.
type BlockKind string

// The kinds of block. Other is one that is not known: its JSON is its text.
const (
	TextBlock     BlockKind = "text"
	ThinkingBlock BlockKind = "thinking"
	ImageBlock    BlockKind = "image"
	CallBlock     BlockKind = "call"
	OtherBlock    BlockKind = "other"
)

// Block is a piece of a message.
type Block struct {
	Kind BlockKind `json:"kind"`
	Text Text      `json:"text,omitempty"` // of a call: its arguments
	// Call and Name are a call's id and tool.
	Call string `json:"call,omitempty"`
	Name string `json:"name,omitempty"`
	// Mime and Data are an image's, Data in base64; empty when it was too large to keep.
	Mime string `json:"mime,omitempty"`
	Data string `json:"data,omitempty"`
	// Cut says that it was longer.
	Cut bool `json:"cut,omitempty"`
}

// add appends a piece of text, within the bound.
func (b *Block) add(piece string) {
	if b.Cut || piece == "" {
		return
	}
	if room := maxText - len(b.Text); len(piece) > room {
		piece, b.Cut = clip(piece, room), true
	}
	b.Text = append(b.Text, piece...)
}

func (b *Block) set(text string) { b.Text, b.Cut = nil, false; b.add(text) }

// clip cuts s to n bytes, not within a letter.
func clip(s string, n int) string { return brief.Cut(s, n) }

// blocks reads the content of a message or result, in any of the forms it is sent in.
func blocks(raw json.RawMessage) []Block { return nested(raw, 0) }

func nested(raw json.RawMessage, depth int) []Block {
	if s := str(raw); s != "" {
		b := Block{Kind: TextBlock}
		b.set(s)
		return []Block{b}
	}
	if f := object(raw); f != nil {
		if _, isBlock := f["type"]; isBlock && f.raw("content") == nil {
			return []Block{block(raw)}
		}
		if c := f.raw("content", "text"); c != nil && depth < maxNested {
			return nested(c, depth+1)
		}
		return []Block{other(raw)}
	}
	var out []Block
	text, data := 0, 0
	for _, one := range array(raw) {
		b := block(one)
		if len(out) == maxBlocks || text+len(b.Text) > maxRowText {
			return append(out, Block{Kind: OtherBlock, Text: Text("(more is left out)"), Cut: true})
		}
		if data += len(b.Data); data > maxRowData {
			data -= len(b.Data)
			b.Data, b.Cut = "", true
		}
		text += len(b.Text)
		out = append(out, b)
	}
	return out
}

func block(raw json.RawMessage) Block {
	if s := str(raw); s != "" {
		b := Block{Kind: TextBlock}
		b.set(s)
		return b
	}
	f := object(raw)
	switch f.text("type") {
	case "text":
		b := Block{Kind: TextBlock}
		b.set(f.text("text", "content"))
		return b
	case "thinking":
		b := Block{Kind: ThinkingBlock}
		b.set(f.text("thinking", "text", "content"))
		return b
	case "image":
		b := Block{Kind: ImageBlock, Mime: clip(f.text("mimeType", "mime_type"), 100), Data: f.text("data")}
		if len(b.Data) > maxImage || b.Data == "" {
			b.Data, b.Cut = "", true
		}
		return b
	case "toolCall", "tool_call", "toolcall":
		return call(f)
	}
	return other(raw)
}

func call(f fields) Block {
	b := Block{Kind: CallBlock, Call: clip(f.text("id", "toolCallId", "tool_call_id"), maxLabel), Name: clip(f.text("name", "toolName", "tool_name"), maxLabel)}
	b.set(string(f.raw("arguments", "args")))
	return b
}

func other(raw json.RawMessage) Block {
	return Block{Kind: OtherBlock, Text: Text(clip(string(raw), maxRaw)), Cut: len(raw) > maxRaw}
}

// instructions are the parts of a system message beside its content: named sections, in their order, where null ends an
// earlier one, and the tools that come and go with it.
func instructions(m fields) []Block {
	var parts []any
	d := json.NewDecoder(bytes.NewReader(m.raw("sections")))
	if at, err := d.Token(); err == nil && at == json.Delim('{') {
		for d.More() && len(parts) < maxBlocks {
			var text json.RawMessage
			name, err := d.Token()
			if err != nil || d.Decode(&text) != nil {
				break
			}
			parts = append(parts, fmt.Sprintf("%s:\n\n%s", name, cmp.Or(str(text), string(text))))
		}
	}
	for _, change := range []struct{ name, what string }{{"toolsAdded", "Tools from here on:"}, {"toolsRemoved", "No tools any more:"}} {
		for i, tool := range m.array(change.name) {
			if i == 0 {
				parts = append(parts, change.what)
			}
			parts = append(parts, tool)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	raw, err := wire.Marshal(parts)
	if err != nil { // it was just read
		return nil
	}
	return blocks(raw)
}

// words is the text of blocks, without what is no text.
func words(all []Block) string {
	var texts []string
	for _, one := range all {
		if one.Kind == TextBlock {
			texts = append(texts, string(one.Text))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// plain is the text of blocks, with a word for what is no text.
func plain(all []Block) string {
	var b strings.Builder
	for _, one := range all {
		switch one.Kind {
		case TextBlock:
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.Write(one.Text)
		case ImageBlock:
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("[image]")
		}
	}
	return b.String()
}

// Usage is what a message cost. Tokens are counted by the provider, Cost is in US dollars.
type Usage struct {
	Input      int     `json:"input"`
	Output     int     `json:"output"`
	CacheRead  int     `json:"cache_read"`
	CacheWrite int     `json:"cache_write"`
	Total      int     `json:"total"`
	Cost       float64 `json:"cost"`
}

// usage reads a message's usage; nil where there is none, or nothing in it.
func usage(f fields) *Usage {
	if f == nil {
		return nil
	}
	u := Usage{f.int("input"), f.int("output"), f.int("cacheRead"), f.int("cacheWrite"), f.int("totalTokens", "total"), f.object("cost").num("total")}
	if f.object("cost") == nil {
		u.Cost = f.num("cost")
	}
	if u == (Usage{}) {
		return nil
	}
	return &u
}

// Plain is s without what a terminal would obey: escape sequences and control characters other than tab and line feed.
func Plain(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			i += escape(s[i:])
			continue
		}
		c, n := utf8.DecodeRuneInString(s[i:])
		if c == '\t' || c == '\n' || c >= 0x20 && c != 0x7f && (c < 0x80 || c > 0x9f) {
			b.WriteRune(c)
		}
		i += n
	}
	return b.String()
}

// escape is how long the escape sequence at the beginning of s is.
func escape(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // CSI: parameters, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', 'X', '^', '_': // a string, to BEL or ST
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return len(s)
	case '(', ')', '*', '+': // a character set
		return min(3, len(s))
	}
	return 2
}

// UserText is what a person says in a message; "" where it is nobody's or somebody else's.
func UserText(message json.RawMessage) string {
	f := object(message)
	if f.text("role") != "user" {
		return ""
	}
	return plain(blocks(f.raw("content")))
}
