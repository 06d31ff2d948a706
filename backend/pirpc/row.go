package pirpc

import (
	"encoding/json"
	"strings"
	"time"
)

// RowKind is what a row of the transcript is.
type RowKind string

// The kinds of row.
const (
	UserRow       RowKind = "user"
	AssistantRow  RowKind = "assistant"
	ToolRow       RowKind = "tool"
	BashRow       RowKind = "bash" // the person's own command
	NoticeRow     RowKind = "notice"
	CompactionRow RowKind = "compaction"
	SummaryRow    RowKind = "summary"
	CustomRow     RowKind = "custom" // what an extension wrote
	SystemRow     RowKind = "system"
	RawRow        RowKind = "raw"
)

// Row is one entry of a transcript. All of its text is the agent's.
type Row struct {
	N    int       `json:"n"` // from 1, in the order in which they began
	Kind RowKind   `json:"kind"`
	At   time.Time `json:"at"`
	// Said is the time that pi gives its message; zero where it gives none.
	Said time.Time `json:"said,omitzero"`
	// Open says that more may come.
	Open   bool    `json:"open,omitempty"`
	Blocks []Block `json:"blocks,omitempty"`
	// Title names what it is about: a tool, a kind of notice, an event that is not known.
	Title string `json:"title,omitempty"`
	// Level is how a notice is meant: info, warning, error.
	Level string `json:"level,omitempty"`
	// Stop is why an assistant's message ended; Error is what went wrong, and Retried that it was tried again.
	Stop    string `json:"stop,omitempty"`
	Error   string `json:"error,omitempty"`
	Retried bool   `json:"retried,omitempty"`
	Model   string `json:"model,omitempty"`
	Usage   *Usage `json:"usage,omitempty"`
	Tool    *Tool  `json:"tool,omitempty"`
	// Interrupted says that it did not come to its end.
	Interrupted bool `json:"interrupted,omitempty"`

	slots map[string]int // of an open assistant's message: where in Blocks each streamed piece goes
	late  bool
}

// Late says that its beginning may have been in an earlier life of the session: it was not seen in this one, or is said
// again to one that met it in the middle.
func (r *Row) Late() bool { return r.late }

// Tool is a call and what came of it.
type Tool struct {
	Call      string          `json:"call"`
	Name      string          `json:"name"`
	Parent    string          `json:"parent,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    []Block         `json:"result,omitempty"`
	Diff      string          `json:"diff,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Took      time.Duration   `json:"took,omitempty"`
	Exit      *int            `json:"exit,omitempty"` // of a BashRow
	Refused   *Refusal        `json:"refused,omitempty"`
}

// Refusal is who did not let a call happen, and why. Pi itself says only that the call failed.
type Refusal struct {
	By     string `json:"by"` // as history names who judges: human:…, rule:…, system:…
	Reason string `json:"reason,omitempty"`
}

// size is how much text it holds, in bytes.
func (r *Row) size() int {
	n := 0
	for _, b := range r.Blocks {
		n += len(b.Text)
	}
	return n
}

// Text is everything in the row that somebody might look for.
func (r *Row) Text() string {
	parts := []string{r.Title, r.Error, plain(r.Blocks)}
	for _, b := range r.Blocks {
		if b.Kind == ThinkingBlock {
			parts = append(parts, string(b.Text))
		}
	}
	if t := r.Tool; t != nil {
		parts = append(parts, t.Name, string(t.Arguments), plain(t.Result), t.Call)
	}
	return strings.TrimSpace(Plain(strings.Join(parts, "\n")))
}
