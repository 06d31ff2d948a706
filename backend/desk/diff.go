package desk

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"deskbell/backend/render"
	"deskbell/backend/wire"
)

// The bounds of diffs on the page.
const (
	maxDiffLines   = 1000     // lines shown, of all diffs of a call together
	maxDiffed      = 64 << 10 // bytes of each side that are compared
	maxDiffLine    = 2000     // bytes of one line shown
	contextLines   = 3
	maxFolded      = 300 // lines that stay and are folded away, of all diffs of a call together
	maxEditsInCall = 32
)

// diffLine is one line of a diff: " " stays, "+" is new, "-" goes. Old and New are its numbers in what was given.
// "…" stands for Same lines that stay, far from any change; Folded are they, or none where they are too many to send.
type diffLine struct {
	Op   string        `json:"op"`
	Text []render.Span `json:"text"`
	Old  int           `json:"old,omitempty"`
	New  int           `json:"new,omitempty"`

	Same   int        `json:"same,omitempty"`
	Folded []diffLine `json:"folded,omitempty"`
}

// diff shows the change of a text as lines.
func (p *partWriter) diff(name, path, old, new string) {
	lines, left := diffLines(old, new, maxDiffLines-p.lines, maxFolded-p.folded)
	p.addDiff(name, path, lines, left)
}

func (p *partWriter) addDiff(name, path string, lines []diffLine, left int) {
	p.lines += len(lines)
	for _, l := range lines {
		p.folded += len(l.Folded)
	}
	shown, _ := pathSpans(path) // marked where it is cut: what is left out here is lines
	p.parts = append(p.parts, callPart{Kind: "diff", Name: name, Path: shown, Lines: list(lines), LeftOut: left, Outside: p.mark(path)})
}

// edits shows a list of changes of one file; false: it is none.
func (p *partWriter) edits(m wire.Member, path string) bool {
	elements, err := wire.Elements(m.Value)
	if err != nil || len(elements) == 0 {
		return false
	}
	type change struct {
		old, new string
		more     []wire.Member // what else it says: replace_all
	}
	var changes []change
	for _, e := range elements {
		members, err := wire.Members(e)
		if err != nil {
			return false
		}
		text := func(names []string) (string, bool) {
			i := slices.IndexFunc(members, func(m wire.Member) bool { return slices.Contains(names, m.Name) })
			if i < 0 {
				return "", false
			}
			s, ok := wire.String(members[i].Value)
			members = slices.Delete(members, i, i+1) // what is left is shown as it is
			return s, ok
		}
		old, hasOld := text(oldNames)
		new, hasNew := text(newNames)
		if !hasOld || !hasNew {
			return false
		}
		changes = append(changes, change{old, new, members})
	}
	left := max(0, len(changes)-maxEditsInCall)
	for i, c := range changes[:len(changes)-left] {
		lines, cut := diffLines(c.old, c.new, maxDiffLines-p.lines, maxFolded-p.folded)
		if i == maxEditsInCall-1 {
			cut += left // further changes, none of which is shown
		}
		p.addDiff(m.Name, path, lines, cut)
		if len(c.more) > 0 {
			p.other(wire.Member{Name: fmt.Sprintf("%s/%d", m.Name, i), Value: wire.Compose(c.more)}, "", false)
		}
	}
	return true
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

func showLine(op, text string, old, new int) diffLine {
	shown, left := render.Cut(text, maxDiffLine)
	spans := render.VisibleLines(strings.TrimSuffix(shown, "\r"))
	if left > 0 {
		spans = append(spans, render.Span{T: "…", M: "the line is longer"})
	}
	return diffLine{Op: op, Text: list(spans), Old: old, New: new}
}

// diffLines compares two texts line by line, with a little of what stays around each change, at most limit lines. The rest of
// what stays is folded away, at most fold lines. left is how many lines are not shown.
func diffLines(oldText, newText string, limit, fold int) (lines []diffLine, left int) {
	oldText, oldCut := render.Cut(oldText, maxDiffed)
	newText, newCut := render.Cut(newText, maxDiffed)
	if oldCut+newCut > 0 {
		left = 1 + (oldCut+newCut)/80 // about so many
	}
	old, new := splitLines(oldText), splitLines(newText)
	lines = []diffLine{}
	ends := differentEnds(old, new)
	show := func(op, text string, old, new int) {
		if len(lines) >= limit {
			left++
			return
		}
		line := showLine(op, text, old, new)
		if ends && strings.HasSuffix(text, "\r") {
			line.Text = append(line.Text, carriageReturn)
		}
		lines = append(lines, line)
	}
	at := 0 // in old
	same := func(from, to, shift int) {
		for i := from; i < to; i++ {
			show(" ", old[i], i+1, i+1+shift)
		}
	}
	far := func(from, to, shift int) {
		n := to - from
		switch {
		case n <= 0:
			return
		case len(lines) >= limit:
			left += n
			return
		}
		line := diffLine{Op: "…", Text: []render.Span{}, Same: n}
		if n <= fold {
			fold -= n
			for i := from; i < to; i++ {
				line.Folded = append(line.Folded, showLine(" ", old[i], i+1, i+1+shift))
			}
		}
		lines = append(lines, line)
	}
	changes := lcs.DiffLines(old, new)
	if len(changes) == 0 {
		far(0, len(old), 0)
	}
	for i, c := range changes {
		shift := c.ReplStart - c.Start
		if i == 0 {
			at = max(0, c.Start-contextLines)
			far(0, at, shift)
		} else if c.Start-at > 2*contextLines {
			same(at, at+contextLines, shift)
			far(at+contextLines, c.Start-contextLines, shift)
			at = c.Start - contextLines
		}
		same(at, c.Start, shift)
		for j := c.Start; j < c.End; j++ {
			show("-", old[j], j+1, 0)
		}
		for j := c.ReplStart; j < c.ReplEnd; j++ {
			show("+", new[j], 0, j+1)
		}
		at = c.End
		if i == len(changes)-1 {
			same(at, min(len(old), at+contextLines), c.ReplEnd-c.End)
			far(at+contextLines, len(old), c.ReplEnd-c.End)
		}
	}
	// A text that is all there is of a side has no line to end.
	if before, after := strings.HasSuffix(oldText, "\n"), strings.HasSuffix(newText, "\n"); before != after && oldCut+newCut == 0 && len(old) > 0 && len(new) > 0 {
		show("-", "", len(old), 0)
		show("+", "", 0, len(new))
		if n := len(lines); n >= 2 && left == 0 {
			lines[n-2].Text, lines[n-1].Text = list(lastEnd(before)), list(lastEnd(after))
		}
	}
	return lines, left
}

// lastEnd shows how a text ends.
func lastEnd(broken bool) []render.Span {
	if broken {
		return []render.Span{{T: "⏎", M: "a line break ends the text"}}
	}
	return []render.Span{noLineEnd}
}

// patchTool is the one tool that reads a patch. To any other the same text is something else: to a shell, a script.
const patchTool = "apply_patch"

// patchBegins is how a patch in the form of apply_patch begins.
const patchBegins = "*** Begin Patch"

// heredoc is how a shell hands a patch to that program.
var heredoc = regexp.MustCompile(`^\s*` + patchTool + `\s*<<-?\s*['"]?\w+['"]?\s*\n`)

// patchIn is the patch that a command hands to apply_patch: it is shown besides the command and never for it.
func patchIn(raw []byte) (string, bool) {
	text, isText := wire.String(raw)
	if words, err := wire.Elements(raw); !isText && err == nil && len(words) > 1 {
		first, _ := wire.String(words[0])
		if text, _ = wire.String(words[len(words)-1]); first == patchTool && strings.HasPrefix(strings.TrimSpace(text), patchBegins) {
			return text, true
		}
	}
	at := heredoc.FindStringIndex(text)
	if at == nil || !strings.HasPrefix(text[at[1]:], patchBegins) {
		return "", false
	}
	return text[at[1]:], true
}

// patch shows a patch in the form of apply_patch, file by file. Its lines have no numbers: it gives none. false: there is
// nothing in it to show.
func (p *partWriter) patch(name, text string) bool {
	before := len(p.parts)
	text, cut := render.Cut(text, 2*maxDiffed)
	left := 0
	if cut > 0 {
		left = 1 + cut/80 // about so many lines
	}
	var path string
	var lines []diffLine
	begun := false
	show := func(op, text string) {
		begun = true
		if p.lines+len(lines) < maxDiffLines {
			lines = append(lines, showLine(op, text, 0, 0))
		} else {
			left++
		}
	}
	flush := func() {
		if begun {
			p.addDiff(name, path, lines, left)
			left = 0
		}
		lines, begun = nil, false
	}
	for _, line := range splitLines(text) {
		file := ""
		for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
			if rest, ok := strings.CutPrefix(line, head); ok {
				file = rest
			}
		}
		switch {
		case file != "" && len(p.parts) < maxCallParts:
			flush()
			path, begun = file, true
			if !strings.HasPrefix(line, "*** Update") {
				show(" ", line)
			}
		case strings.TrimSpace(line) == patchBegins, line == "*** End Patch":
		case line != "" && strings.Contains("+- ", line[:1]):
			show(line[:1], line[1:])
		default: // where the change is, a move, or nothing that is known: shown as it is
			show(" ", line)
		}
	}
	flush()
	return len(p.parts) > before
}
