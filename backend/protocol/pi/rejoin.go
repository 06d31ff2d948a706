package pi

import (
	"context"
	"encoding/json"

	"deskbell/backend/pirpc"
	"deskbell/backend/transcript"
)

// A pi behind a relay goes on while its hub is away. What was open when the hub was lost is broken off in the transcript,
// for the time being; when the relay is back and says how it went on, that is the same row.

// lately is how many rows are looked at for those.
const lately = 200

// newest are the rows of a session that came last, in such numbers that the next one is 1.
func (b *Binding) newest(ctx context.Context, had transcript.Session) (newest []*pirpc.Row, err error) {
	if had.Rows == 0 {
		return nil, nil
	}
	rows, err := b.Transcripts.Rows(ctx, Name, had.ID, transcript.Query{Limit: lately})
	for _, stored := range rows {
		var r pirpc.Row
		if json.Unmarshal(stored.Body, &r) == nil {
			r.N = stored.N - had.Rows
			newest = append(newest, &r)
		}
	}
	return newest, err
}

// leftOpen are those of rows that were broken off when the relay lost the hub, by what went on in them.
func leftOpen(rows []*pirpc.Row) map[string]pirpc.Row {
	left := map[string]pirpc.Row{}
	for _, r := range rows {
		if r.Interrupted {
			left[goingOn(r)] = *r
		}
	}
	delete(left, "")
	return left
}

// goingOn names what goes on in a row, of which there is one at a time; "" where nothing can go on.
func goingOn(r *pirpc.Row) string {
	switch {
	case r.Kind == pirpc.ToolRow && r.Tool != nil && r.Tool.Call != "":
		return "call " + r.Tool.Call
	case r.Kind == pirpc.AssistantRow, r.Kind == pirpc.CompactionRow:
		return string(r.Kind)
	}
	return ""
}

// storedRow is a row as it is written down: at the end of what was there before, or as the row of before that goes on in it.
func (e *epoch) storedRow(r *pirpc.Row) (transcript.Row, error) {
	had, known := e.joined[r.N]
	if name := goingOn(r); !known && name != "" {
		if had, known = e.left[name]; known {
			delete(e.left, name)
			e.joined[r.N] = had
		}
	}
	if !known {
		return storedRow(r, e.offset)
	}
	whole := *r
	whole.N, whole.At = had.N, had.At
	if whole.Tool != nil && had.Tool != nil && whole.Tool.Arguments == nil {
		tool := *whole.Tool
		tool.Arguments = had.Tool.Arguments
		whole.Tool = &tool
	}
	return storedRow(&whole, e.offset)
}
