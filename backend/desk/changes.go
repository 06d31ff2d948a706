package desk

import (
	"fmt"
	"path"
	"regexp"
	"slices"

	"deskbell/backend/patch"
	"deskbell/backend/render"
	"deskbell/backend/wire"
)

const maxEditsInCall = 32

// pending is a diff whose lines are not yet those of its part.
type pending struct {
	part int
	comparison
}

// diff shows the change of a file as lines, once it is known what else there is. does is what else becomes of the file.
func (p *partWriter) diff(name, path, does string, c comparison) {
	shown, _ := pathSpans(path) // marked where it is cut: what is left out here is lines
	p.diffs = append(p.diffs, pending{len(p.parts), c})
	p.parts = append(p.parts, callPart{Kind: "diff", Name: name, Path: shown, Outside: p.mark(path), Risks: render.FileRisks(path), Does: does, Added: c.added, Removed: c.gone})
}

// finishDiffs gives every diff its share of the lines.
func (p *partWriter) finishDiffs() {
	wants := make([]int, len(p.diffs))
	for i := range p.diffs {
		wants[i] = p.diffs[i].rows()
	}
	fold := maxFolded
	for i, limit := range shares(maxDiffLines, wants) {
		part := &p.parts[p.diffs[i].part]
		part.Lines, part.LeftOut = p.diffs[i].show(limit, fold)
		for _, l := range part.Lines {
			fold -= len(l.Folded)
		}
	}
}

// notShown says that there are more changes than are shown.
func (p *partWriter) notShown(n int, what string, more []comparison) {
	added, gone, bytes := 0, 0, 0
	for _, c := range more {
		added, gone = added+c.added, gone+c.gone
		for _, r := range c.runs {
			for _, line := range r.lines {
				bytes += len(line) + 1
			}
		}
	}
	says := fmt.Sprintf("%d more %s are not shown: %d lines added, %d removed", n, what, added, gone)
	p.parts = append(p.parts, callPart{Kind: "text", Name: "…", Text: []render.Span{{T: says}}, LeftOut: bytes})
}

// edits shows a list of changes of one file; false: it is none.
func (p *partWriter) edits(m wire.Member, path string) bool {
	elements, err := wire.Elements(m.Value)
	if err != nil || len(elements) == 0 {
		return false
	}
	var changes []comparison
	var more [][]wire.Member // what else each says: replace_all
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
		changes, more = append(changes, compare(old, new)), append(more, members)
	}
	shown := min(len(changes), maxEditsInCall)
	for i, c := range changes[:shown] {
		p.diff(m.Name, path, "", c)
		if len(more[i]) > 0 {
			p.other(wire.Member{Name: fmt.Sprintf("%s/%d", m.Name, i), Value: wire.Compose(more[i])}, "", false)
		}
	}
	if n := len(changes) - shown; n > 0 {
		p.notShown(n, "changes of this file", changes[shown:])
	}
	return true
}

// handsOver is how a shell hands a patch to that program, in the folder that it goes to first.
var handsOver = regexp.MustCompile(`^\s*(?:cd\s+(?:'([^']+)'|"([^"$\x60\\]+)"|([^\s'"&;|$\x60\\-][^\s'"&;|$\x60\\]*))\s*&&\s*)?apply_?patch\s*<<`)

// patchIn is the patch that a command hands to apply_patch, and the folder that it goes to for that: it is shown besides the
// command and never for it.
func patchIn(raw []byte) (text, folder string, ok bool) {
	text, isText := wire.String(raw)
	if words, err := wire.Elements(raw); !isText && err == nil && len(words) > 1 {
		first, _ := wire.String(words[0])
		if text, _ = wire.String(words[len(words)-1]); first == patch.Tool || first == patch.Alias {
			text, ok = patch.In(text)
			return text, "", ok
		}
	}
	at := handsOver.FindStringSubmatch(text)
	if at == nil {
		return "", "", false
	}
	text, ok = patch.In(text[len(at[0])-len("<<"):])
	return text, at[1] + at[2] + at[3], ok
}

// handed shows what is handed to apply_patch, if it is a patch.
func (p *partWriter) handed(name, text string) bool {
	inner, ok := patch.In(text)
	return ok && p.patch(name, inner, "")
}

// patchDoes is what becomes of a file besides the lines that follow.
var patchDoes = map[patch.Change]string{patch.Add: "new file", patch.Delete: "deletes the file"}

// patched is what a patch does to one file. Its lines have no numbers: it gives none.
func patched(f patch.File) (does string, c comparison) {
	does, c = patchDoes[f.Change], comparison{told: true}
	if does != "" {
		c.say(" ", f.Head)
	}
	if f.To != "" {
		does = "moves the file"
	}
	for _, l := range f.Lines {
		c.say(l.Op, l.Text)
	}
	return does, c
}

// say adds a line; it goes with the lines before it where it is like them.
func (c *comparison) say(op, text string) {
	lines := []string{text}
	if last := len(c.runs) - 1; last < 0 || c.runs[last].op != op {
		c.add(run{op: op, lines: lines})
		return
	}
	before := &c.runs[len(c.runs)-1]
	before.lines = append(before.lines, lines...)
	c.count(op, 1)
}

// patch shows a patch in the form of apply_patch, file by file, as it is read in a folder of its own, if it is. false: there
// is nothing in it to show.
func (p *partWriter) patch(name, text, folder string) bool {
	files := patch.Files(text)
	below := func(file string) string {
		if folder == "" || file == "" || path.IsAbs(file) {
			return file
		}
		return path.Join(folder, file)
	}
	shown := min(len(files), max(1, maxCallParts-len(p.parts)))
	for _, f := range files[:shown] {
		does, c := patched(f)
		p.diff(name, below(f.Path), does, c)
		if f.To != "" {
			p.parts = append(p.parts, p.path("moves it to", below(f.To)))
		}
	}
	if n := len(files) - shown; n > 0 {
		var more []comparison
		for _, f := range files[shown:] {
			_, c := patched(f)
			more = append(more, c)
		}
		p.notShown(n, "files that are changed", more)
	}
	return len(files) > 0
}
