package desk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"deskbell/backend/render"
)

// The bounds of diffs on the page.
const (
	maxDiffLines = 1000 // lines shown, of all diffs of a call together
	maxDiffLine  = 2000 // bytes of one line shown
	contextLines = 3
	maxFolded    = 300 // lines that stay and are folded away, of all diffs of a call together
)

// diffLine is one line of a diff: " " stays, "+" is new, "-" goes. Old and New are its numbers in what was given.
// "…" stands for Same lines. Where Hides is empty they stay, far from any change, and Folded are they, or none where they
// are too many to send; else they are more lines of that kind, for which there is no room.
type diffLine struct {
	Op   string        `json:"op"`
	Text []render.Span `json:"text"`
	Old  int           `json:"old,omitempty"`
	New  int           `json:"new,omitempty"`
	Left int           `json:"left,omitempty"` // bytes of it that are not shown

	Same   int        `json:"same,omitempty"`
	Folded []diffLine `json:"folded,omitempty"`
	Hides  string     `json:"hides,omitempty"`
}

// run is lines of a diff, one after the other, that fare alike. old and new are the numbers of the first of them.
type run struct {
	op       string
	lines    []string
	old, new int
	mark     []render.Span // shown in place of the one line
}

// comparison is a diff, whole: how much of it there is room for is known when all of a call is.
type comparison struct {
	runs  []run
	told  bool // what stays is told too: a patch says what it likes there
	ends  bool // its lines end differently
	added int
	gone  int
}

func (c *comparison) add(r run) {
	c.count(r.op, len(r.lines))
	if len(r.lines) > 0 {
		c.runs = append(c.runs, r)
	}
}

func (c *comparison) count(op string, n int) {
	switch op {
	case "+":
		c.added += n
	case "-":
		c.gone += n
	}
}

// compare compares two texts line by line.
func compare(oldText, newText string) comparison {
	old, new := splitLines(oldText), splitLines(newText)
	c := comparison{ends: differentEnds(old, new)}
	at, to := 0, 0
	for _, d := range lcs.DiffLines(old, new) {
		c.add(run{op: " ", lines: old[at:d.Start], old: at + 1, new: to + 1})
		c.add(run{op: "-", lines: old[d.Start:d.End], old: d.Start + 1})
		c.add(run{op: "+", lines: new[d.ReplStart:d.ReplEnd], new: d.ReplStart + 1})
		at, to = d.End, d.ReplEnd
	}
	c.add(run{op: " ", lines: old[at:], old: at + 1, new: to + 1})
	// A text that is all there is of a side has no line to end.
	if before, after := strings.HasSuffix(oldText, "\n"), strings.HasSuffix(newText, "\n"); before != after && len(old) > 0 && len(new) > 0 {
		c.add(run{op: "-", lines: []string{""}, old: len(old), mark: lastEnd(before)})
		c.add(run{op: "+", lines: []string{""}, new: len(new), mark: lastEnd(after)})
	}
	return c
}

// matters says whether the lines of a run are what the diff is about.
func (c *comparison) matters(r run) bool { return c.told || r.op != " " }

// around is how many lines of a run that stays are shown at its beginning and at its end; the rest is folded away.
func (c *comparison) around(i int) (head, tail int) {
	n := len(c.runs[i].lines)
	if i > 0 {
		head = contextLines
	}
	if i < len(c.runs)-1 {
		tail = contextLines
	}
	if n <= head+tail {
		return n, 0
	}
	return head, tail
}

// rows is how many rows the diff has when nothing has to be left out.
func (c *comparison) rows() (n int) {
	for i, r := range c.runs {
		if c.matters(r) {
			n += len(r.lines)
			continue
		}
		head, tail := c.around(i)
		n += head + tail
		if len(r.lines) > head+tail {
			n++
		}
	}
	return n
}

// shares divides a room among those who want some of it: nobody gets less than an equal part for the sake of one who
// wants more.
func shares(room int, wants []int) []int {
	order := make([]int, len(wants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return wants[a] - wants[b] })
	got := make([]int, len(wants))
	for i, at := range order {
		got[at] = min(wants[at], room/(len(order)-i))
		room -= got[at]
	}
	return got
}

// divide says how many lines of each run are shown in so many rows, and how many are left for what stays around them.
// What goes and what comes have their shares: a long removal must not hide what takes its place.
func (c *comparison) divide(limit int) (got []int, around int) {
	rows := c.rows()
	all := rows <= limit
	wants := make([]int, len(c.runs))
	asking := 0
	for i, r := range c.runs {
		if c.matters(r) && (all || asking < limit/3) {
			wants[i], asking = len(r.lines), asking+1
		}
	}
	if all {
		return wants, rows
	}
	around = max(0, limit-2*asking-1) // for each of them a row that says what is not shown, and one for what stays before it
	got = shares(around, wants)
	for _, n := range got {
		around -= n
	}
	return got, around
}

// show is the diff in at most limit rows, at most fold lines folded away in them. left is how many lines are not shown
// that matter.
func (c *comparison) show(limit, fold int) (lines []diffLine, left int) {
	got, around := c.divide(limit)
	last := len(c.runs) - 1
	for last > 0 && c.matters(c.runs[last]) && got[last] == 0 {
		last--
	}
	lines = []diffLine{}
	for i, r := range c.runs {
		switch n := len(r.lines); {
		case c.matters(r):
			lines = append(lines, c.some(r, 0, got[i])...)
			left += n - got[i]
			if got[i] > 0 && got[i] < n {
				lines = append(lines, diffLine{Op: "…", Text: []render.Span{}, Same: n - got[i], Hides: r.op})
			}
		case i > last:
		default:
			head, tail := c.around(i)
			if head+tail > around {
				head, tail = 0, 0
			}
			around -= head + tail
			lines = append(lines, c.some(r, 0, head)...)
			if far := n - head - tail; far > 0 {
				line := diffLine{Op: "…", Text: []render.Span{}, Same: far}
				if far <= fold {
					fold -= far
					line.Folded = c.some(r, head, n-tail)
				}
				lines = append(lines, line)
			}
			lines = append(lines, c.some(r, n-tail, n)...)
		}
	}
	return lines, left
}

// some are the lines of a run from one on and up to another.
func (c *comparison) some(r run, from, to int) (lines []diffLine) {
	for i, text := range r.lines[from:to] {
		line := diffLine{Op: r.op, Text: list(r.mark)}
		if r.mark == nil {
			line.Text, line.Left = lineSpans(text, c.ends)
		}
		if r.old > 0 {
			line.Old = r.old + from + i
		}
		if r.new > 0 {
			line.New = r.new + from + i
		}
		lines = append(lines, line)
	}
	return lines
}

// splitLines are the lines of a text, without their ends. A line break at the end ends the last line and begins none.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// Line ends are shown where they are not all alike: a change of them alone would look like none.
var (
	carriageReturn = render.Span{T: "␍", M: "the line ends with a carriage return"}
	noLineEnd      = render.Span{T: "⊣", M: "no line break ends the text"}
)

// differentEnds says whether lines of the two end differently, by carriage returns.
func differentEnds(lists ...[]string) bool {
	with, without := false, false
	for _, lines := range lists {
		for _, l := range lines {
			with, without = with || strings.HasSuffix(l, "\r"), without || !strings.HasSuffix(l, "\r")
		}
	}
	return with && without
}

// lineSpans shows a line; left is how many bytes of it are not shown.
func lineSpans(text string, ends bool) (spans []render.Span, left int) {
	shown, left := render.Cut(text, maxDiffLine)
	spans = render.VisibleLines(strings.TrimSuffix(shown, "\r"))
	if left > 0 {
		spans = append(spans, render.Span{T: "…", M: fmt.Sprintf("%d more bytes of the line are not shown", left)})
	}
	if ends && strings.HasSuffix(text, "\r") {
		spans = append(spans, carriageReturn)
	}
	return list(spans), left
}

// lastEnd shows how a text ends.
func lastEnd(broken bool) []render.Span {
	if broken {
		return []render.Span{{T: "⏎", M: "a line break ends the text"}}
	}
	return []render.Span{noLineEnd}
}
