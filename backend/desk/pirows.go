package desk

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"deskbell/backend/gate"
	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
	"deskbell/backend/transcript"
)

// piRows answers with rows: the newest, those before or from one, those that changed since, or those that say something.
func (d *Desk) piRows(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	q := r.URL.Query()
	var numbers [4]int
	for i, name := range []string{"after", "before", "from", "limit"} {
		n, err := wholeNumber(q.Get(name), name, 0, 0)
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	limit := min(numbers[3], piRowsPage)
	if limit == 0 {
		limit = piRowsPage
	}
	query := transcript.Query{After: int64(numbers[0]), Before: numbers[1], From: numbers[2], Text: q.Get("q"), Limit: limit, Bytes: maxPiPage}
	if _, err := d.Transcripts.Get(r.Context(), piName, r.PathValue("id")); err != nil {
		return err
	}
	rows, err := d.Transcripts.Rows(r.Context(), piName, r.PathValue("id"), query)
	if err != nil {
		return err
	}
	views, rev := []piRowView{}, query.After
	for _, row := range rows {
		rev = max(rev, row.Rev)
		views = append(views, viewPiRow(row))
	}
	more := false
	if query.After > 0 && len(rows) > 0 {
		rest, err := d.Transcripts.Rows(r.Context(), piName, r.PathValue("id"), transcript.Query{After: rev, Limit: 1})
		if err != nil {
			return err
		}
		more = len(rest) > 0
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"rows": views, "rev": rev, "more": more})
}

// maxPiPage bounds the rows of a page, in bytes: pictures are large.
const maxPiPage = 8 << 20

// piSpan is text of a terminal: what is hidden in it is labelled, what is coloured has a style.
type piSpan struct {
	render.Span
	Style string `json:"s,omitempty"`
}

type piBlock struct {
	Kind pirpc.BlockKind `json:"kind"`
	HTML string          `json:"html,omitempty"`
	Text []piSpan        `json:"text,omitempty"`
	Call string          `json:"call,omitempty"`
	Name []render.Span   `json:"name,omitempty"`
	Mime string          `json:"mime,omitempty"`
	Data string          `json:"data,omitempty"`
	Cut  bool            `json:"cut,omitempty"`
}

type piTool struct {
	Call      string        `json:"call"`
	Name      []render.Span `json:"name"`
	Arguments []render.Span `json:"arguments"`
	Result    []piBlock     `json:"result"`
	Diff      []render.Span `json:"diff,omitempty"`
	IsError   bool          `json:"is_error"`
	TookMs    int64         `json:"took_ms,omitempty"`
	Exit      *int          `json:"exit,omitempty"`
	Nested    bool          `json:"nested,omitempty"`
	Refused   *piRefusal    `json:"refused,omitempty"`
}

// piRefusal is who did not let a call happen; Rule is which rule it was.
type piRefusal struct {
	By     string        `json:"by"`
	Rule   string        `json:"rule,omitempty"`
	Reason []render.Span `json:"reason"`
}

type piRowView struct {
	N           int           `json:"n"`
	Rev         int64         `json:"rev"`
	Kind        pirpc.RowKind `json:"kind"`
	At          int64         `json:"at"`
	Open        bool          `json:"open,omitempty"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Retried     bool          `json:"retried,omitempty"`
	Title       []render.Span `json:"title,omitempty"`
	Level       string        `json:"level,omitempty"`
	Stop        string        `json:"stop,omitempty"`
	Error       []render.Span `json:"error,omitempty"`
	Model       string        `json:"model,omitempty"`
	Usage       *pirpc.Usage  `json:"usage,omitempty"`
	Blocks      []piBlock     `json:"blocks"`
	Tool        *piTool       `json:"tool,omitempty"`
}

func viewPiRow(stored transcript.Row) piRowView {
	var row pirpc.Row
	if err := json.Unmarshal(stored.Body, &row); err != nil { // the hub's own
		row = pirpc.Row{Kind: pirpc.RawRow}
	}
	v := piRowView{
		N: stored.N, Rev: stored.Rev, Kind: row.Kind, At: ms(stored.At), Open: row.Open, Interrupted: row.Interrupted, Retried: row.Retried, Level: row.Level, Stop: row.Stop,
		Model: render.Terminal(row.Model), Usage: row.Usage, Blocks: viewPiBlocks(row.Blocks, row.Kind == pirpc.AssistantRow || row.Kind == pirpc.SummaryRow || row.Kind == pirpc.CompactionRow),
	}
	if row.Title != "" {
		v.Title = shortSpans(pirpc.Plain(row.Title))
	}
	if row.Error != "" {
		text, _ := render.Cut(pirpc.Plain(row.Error), maxPrompt)
		v.Error = render.VisibleLines(text)
	}
	if t := row.Tool; t != nil {
		v.Tool = viewPiTool(t)
	}
	return v
}

func viewPiTool(t *pirpc.Tool) *piTool {
	v := &piTool{Call: t.Call, Name: shortSpans(t.Name), Result: viewPiBlocks(t.Result, false), IsError: t.IsError, TookMs: t.Took.Milliseconds(), Exit: t.Exit, Nested: t.Parent != "", Arguments: []render.Span{}}
	if r := t.Refused; r != nil {
		text, _ := render.Cut(r.Reason, maxPrompt)
		v.Refused = &piRefusal{By: render.Terminal(r.By), Reason: list(render.VisibleLines(text))}
		v.Refused.Rule, _ = strings.CutPrefix(r.By, gate.RuleJudge)
		if v.Refused.Rule == r.By {
			v.Refused.Rule = ""
		}
	}
	var pretty bytes.Buffer
	if len(t.Arguments) > 0 && json.Indent(&pretty, t.Arguments, "", "  ") == nil {
		text, _ := render.Cut(pretty.String(), maxPartText)
		v.Arguments = list(render.VisibleLines(text))
	}
	if t.Diff != "" {
		text, _ := render.Cut(pirpc.Plain(t.Diff), maxCallText)
		v.Diff = render.VisibleLines(text)
	}
	return v
}

func viewPiBlocks(blocks []pirpc.Block, markdown bool) []piBlock {
	out := []piBlock{}
	for _, b := range blocks {
		v := piBlock{Kind: b.Kind, Call: b.Call, Cut: b.Cut}
		if b.Name != "" {
			v.Name = shortSpans(b.Name)
		}
		switch {
		case b.Kind == pirpc.ImageBlock:
			if shownImage[b.Mime] {
				v.Mime, v.Data = b.Mime, b.Data
			}
		case b.Kind == pirpc.TextBlock && markdown:
			v.HTML = render.HTML(pirpc.Plain(string(b.Text)))
		default:
			text, left := render.Cut(string(b.Text), maxCallText)
			v.Cut = v.Cut || left > 0
			for _, piece := range pirpc.Styled(text) {
				for _, s := range render.VisibleLines(piece.Text) {
					v.Text = append(v.Text, piSpan{s, piece.Style})
				}
			}
		}
		out = append(out, v)
	}
	return out
}

// shownImage are the kinds of picture that a page shows and that hold nothing but a picture.
var shownImage = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}
