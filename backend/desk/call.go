package desk

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/patch"
	"deskbell/backend/render"
	"deskbell/backend/wire"
)

// The bounds of what one call may put on the page, in bytes, entries and lines.
const (
	maxPartText  = 32 << 10  // of one argument
	maxCallText  = 128 << 10 // of all of them
	maxPrompt    = 8 << 10
	maxPath      = 4 << 10
	maxStepText  = 1 << 10
	maxEditable  = 64 << 10 // of one argument; a larger one cannot be edited here
	maxCallParts = 64
	maxExtra     = 16 // of what is in no argument
)

type callView struct {
	Platform   []render.Span   `json:"platform"`
	Tool       []render.Span   `json:"tool"`
	Folder     []render.Span   `json:"folder,omitempty"`
	Permission []render.Span   `json:"permission,omitempty"`
	About      []aboutView     `json:"about,omitempty"`
	Session    string          `json:"session,omitempty"`
	Request    string          `json:"request,omitempty"`
	Subagent   bool            `json:"subagent"`
	Shown      bool            `json:"shown,omitempty"` // no leave is asked for it: a question of another kind is about it
	Prompt     []render.Span   `json:"prompt,omitempty"`
	Steps      []callStep      `json:"steps"`
	Parts      []callPart      `json:"parts"`
	Arguments  json.RawMessage `json:"arguments"`
	Editable   []string        `json:"editable"`
	Warning    string          `json:"warning,omitempty"`
	Asks       *asksView       `json:"asks,omitempty"`
}

// asksView is the rule that leaves a call to the person: one that asks, or one of which it cannot be told whether it does,
// or denies.
type asksView struct {
	ruleRef
	Verdict gate.Verdict `json:"verdict"`
	Untold  bool         `json:"untold,omitempty"`
}

// aboutView is something that the agent says of the call besides its arguments.
type aboutView struct {
	Name string        `json:"name"`
	Text []render.Span `json:"text"`
}

// viewAbout shows what the agent says that a call is for, each of it in one line.
func viewAbout(about json.RawMessage) []aboutView {
	members, err := wire.Members(about)
	if err != nil {
		return nil
	}
	var views []aboutView
	for _, m := range members {
		text, isText := wire.String(m.Value)
		if said, err := wire.Members(m.Value); !isText && err == nil {
			var parts []string
			for _, p := range said {
				words, ok := wire.String(p.Value)
				if !ok {
					words = string(p.Value)
				}
				parts = append(parts, p.Name+": "+words)
			}
			text = strings.Join(parts, "; ")
		}
		if text != "" {
			views = append(views, aboutView{m.Name, shortSpans(text)})
		}
	}
	return views
}

type callStep struct {
	At   int64         `json:"at"`
	What string        `json:"what"`
	Text []render.Span `json:"text"` // says so when it was not allowed as it is
	// Verdict is how it was judged: allow, deny, modify, unanswered; empty while it waits.
	Verdict string `json:"verdict,omitempty"`
}

// callPart is one argument as what it is; which members are set follows from Kind.
type callPart struct {
	Kind    string          `json:"kind"` // command, diff, file, url, path, text, data
	Name    string          `json:"name"`
	Path    []render.Span   `json:"path,omitzero"`
	Text    []render.Span   `json:"text,omitzero"`
	Risks   []string        `json:"risks,omitzero"`
	Lines   []diffLine      `json:"lines,omitzero"`
	Host    []render.Span   `json:"host,omitzero"`
	URL     []render.Span   `json:"url,omitzero"`
	Outside *bool           `json:"outside,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Added   int             `json:"added,omitempty"` // lines of a diff, also those that are not shown
	Removed int             `json:"removed,omitempty"`
	Does    string          `json:"does,omitempty"`     // what becomes of the file of a diff besides
	LeftOut int             `json:"left_out,omitempty"` // bytes of text, or lines of a diff, that are not shown
	Aside   bool            `json:"aside,omitempty"`    // need not be read before the call is allowed
	Beside  bool            `json:"beside,omitempty"`   // is no argument: the call says it besides
}

func (d *Desk) viewCall(protocol string, c *inbox.Call) *callView {
	v := &callView{
		Platform: list(render.Visible(c.Platform)), Tool: list(render.Visible(c.Tool)), Folder: folderSpans(c.Folder), Permission: spansOrNone(c.Permission), About: viewAbout(c.About),
		Subagent: c.Subagent, Steps: []callStep{}, Editable: append([]string{}, c.Editable...),
	}
	if c.Session != "" {
		v.Session, v.Request = protocol+"/"+c.Session, c.Request
	}
	if c.Prompt != "" {
		prompt, _ := render.Cut(c.Prompt, maxPrompt)
		v.Prompt = render.VisibleLines(prompt)
	}
	for _, s := range c.Steps {
		text, _ := render.Cut(s.Text, maxStepText)
		v.Steps = append(v.Steps, callStep{At: ms(s.At), What: s.What, Text: list(render.Visible(text)), Verdict: s.Verdict})
	}
	if c.BypassesPrompt != "" {
		v.Warning = "Allowing this also answers " + render.Terminal(c.BypassesPrompt) + "’s own question."
	}
	members, err := wire.Members(c.Arguments)
	if err != nil { // a binding checks what it takes
		members = nil
	}
	v.Parts = d.callParts(*c, members)
	v.startEdit(members)
	return v
}

// startEdit fills in what an edit starts from: without the arguments that are too large for it, which then cannot be
// edited.
func (v *callView) startEdit(members []wire.Member) {
	var small []wire.Member
	names := []string{}
	for _, m := range members {
		if len(m.Value) <= maxEditable {
			small = append(small, m)
			names = append(names, m.Name)
		}
	}
	v.Arguments = wire.Compose(small)
	if len(small) == len(members) {
		return
	}
	if slices.Contains(v.Editable, "*") {
		v.Editable = names
	}
	v.Editable = slices.DeleteFunc(v.Editable, func(name string) bool { return !slices.Contains(names, name) })
}

// What arguments are called by the tools that are known: Claude Code's, Codex's, Cursor's and pi's.
var (
	pathNames  = []string{"file_path", "path", "notebook_path", "filePath", "target_file"}
	oldNames   = []string{"old_string", "oldText", "old_str"}
	newNames   = []string{"new_string", "newText", "new_str"}
	wholeNames = []string{"content", "contents", "new_source", "file_text"}
	editsNames = []string{"edits"}
)

// callParts shows the arguments in the agent's order. What changes a file is shown with that file's path.
func (d *Desk) callParts(c inbox.Call, members []wire.Member) []callPart {
	p := partWriter{outside: func(file string) bool { return d.Gate.Place.Outside(c.Folder, file) }, used: map[string]bool{}, parts: []callPart{}}
	text := func(names []string) (name, value string, ok bool) {
		for _, m := range members {
			if s, isText := wire.String(m.Value); isText && slices.Contains(names, m.Name) {
				return m.Name, s, true
			}
		}
		return "", "", false
	}
	pathName, file, hasPath := text(pathNames)
	oldName, old, hasOld := text(oldNames)
	newName, new, hasNew := text(newNames)
	for i, m := range members {
		if len(p.parts) >= maxCallParts {
			p.rest(members[i:])
			break
		}
		value, isText := wire.String(m.Value)
		switch {
		case p.used[m.Name]:
		case hasPath && hasOld && hasNew && (m.Name == oldName || m.Name == newName):
			p.used[oldName], p.used[newName], p.used[pathName] = true, true, true
			p.diff(newName, file, "", compare(old, new))
		case hasPath && isText && slices.Contains(wholeNames, m.Name):
			p.used[pathName] = true
			p.file(m.Name, file, value)
		case hasPath && slices.Contains(editsNames, m.Name) && p.edits(m, file):
			p.used[pathName] = true
		case c.Tool == patch.Tool && isText && p.handed(m.Name, value):
		case gate.NamesCommand(m.Name, isText):
			p.command(m, value, isText)
			if text, folder, ok := patchIn(m.Value); ok && len(p.parts) < maxCallParts {
				p.patch(m.Name, text, folder)
			}
		case isText && slices.Contains(pathNames, m.Name), isText && gate.NamesFolder(m.Name):
			p.later = append(p.later, m)
		default:
			p.other(m, value, isText)
			p.parts[len(p.parts)-1].Aside = gate.Aside(c, m.Name)
		}
	}
	p.extra(c)
	p.finishDiffs()
	return p.paths()
}

// extra shows what the call says besides its arguments: whose tool it is, and what is in none of them.
func (p *partWriter) extra(c inbox.Call) {
	for _, said := range [][2]string{{"tool/provider", c.Provider}, {"tool/version", c.Version}} {
		if said[1] != "" {
			p.other(wire.Member{Name: said[0]}, said[1], true)
		}
	}
	members, _ := wire.Members(c.Extra) // none where there are none
	from := len(p.parts)
	for i, m := range members {
		if i == maxExtra {
			p.rest(members[i:])
			break
		}
		if value, isText := wire.String(m.Value); m.Name == "raw_command" || gate.NamesCommand(m.Name, isText) {
			p.command(m, value, isText)
		} else {
			p.other(m, value, isText)
		}
	}
	for i := range p.parts[from:] {
		p.parts[from+i].Beside = true
	}
}

// partWriter gathers the parts of one call.
type partWriter struct {
	outside func(path string) bool
	used    map[string]bool // arguments that another part shows
	text    int             // bytes of text that are shown so far
	diffs   []pending       // those of the parts that wait for their lines
	later   []wire.Member   // paths, unless a change shows them
	parts   []callPart
}

// paths puts the paths that nothing else shows first: they say what the rest is about.
func (p *partWriter) paths() []callPart {
	var first []callPart
	for _, m := range p.later {
		if p.used[m.Name] {
			continue
		}
		value, _ := wire.String(m.Value)
		first = append(first, p.path(m.Name, value))
	}
	return list(append(first, p.parts...)) // a call without arguments has none
}

// path is a path by itself.
func (p *partWriter) path(name, value string) callPart {
	outside := p.outside(value)
	shown, left := pathSpans(value)
	return callPart{Kind: "path", Name: name, Path: shown, Outside: &outside, LeftOut: left, Risks: render.FileRisks(value)}
}

// pathSpans shows a path: a long one without its detours, and of one that is still too long the end, which says what it
// is. left is how many bytes are not shown.
func pathSpans(s string) (shown []render.Span, left int) {
	if len(s) > maxStepText && !strings.Contains(s, `\`) {
		s = path.Clean(s)
	}
	if len(s) <= maxPath {
		return list(render.Visible(s)), 0
	}
	left = len(s) - maxPath
	for left < len(s) && !utf8.RuneStart(s[left]) {
		left++
	}
	mark := render.Span{T: "…", M: fmt.Sprintf("%d bytes are left out", left)}
	return append([]render.Span{mark}, render.Visible(s[left:])...), left
}

func folderSpans(folder string) []render.Span {
	if folder == "" {
		return nil
	}
	shown, _ := pathSpans(folder)
	return shown
}

func (p *partWriter) command(m wire.Member, value string, isText bool) {
	if !isText {
		words, ok := gate.Words(m.Value)
		if !ok {
			p.other(m, "", false)
			return
		}
		value = gate.Typed(words)
	}
	p.parts = append(p.parts, commandPart(m.Name, value, p.outside))
}

func commandPart(name, command string, outside func(path string) bool) callPart {
	text, risks := render.Command(command, outside)
	_, left := render.Cut(command, render.MaxCommand)
	return callPart{Kind: "command", Name: name, Text: list(text), Risks: risks, LeftOut: left}
}

// viewCommand shows a command that runs in no agent's folder.
func viewCommand(words []string) *callPart {
	part := commandPart("command", gate.Typed(words), nil)
	return &part
}

// cut is as much of a text as there is room for.
func (p *partWriter) cut(text string) (string, int) {
	text, left := render.Cut(text, min(maxPartText, maxCallText-p.text))
	p.text += len(text)
	return text, left
}

func (p *partWriter) file(name, path, content string) {
	text, left := p.cut(content)
	shown, cut := pathSpans(path)
	left += cut
	p.parts = append(p.parts, callPart{Kind: "file", Name: name, Path: shown, Text: list(render.VisibleLines(text)), LeftOut: left, Outside: p.mark(path), Risks: render.FileRisks(path)})
}

// rest is what there is no part of its own for, as one part of data.
func (p *partWriter) rest(members []wire.Member) {
	p.other(wire.Member{Name: "…", Value: wire.Compose(members)}, "", false)
}

// mark is whether a path leads outside, where it does.
func (p *partWriter) mark(path string) *bool {
	if outside := p.outside(path); outside {
		return &outside
	}
	return nil
}

func (p *partWriter) other(m wire.Member, value string, isText bool) {
	switch {
	case isText && isAddress(m.Name, value):
		url, host := render.URL(value)
		p.parts = append(p.parts, callPart{Kind: "url", Name: m.Name, URL: list(url), Host: list(render.Visible(host)), Risks: render.Doubts(value)})
	case isText:
		text, left := p.cut(value)
		p.parts = append(p.parts, callPart{Kind: "text", Name: m.Name, Text: list(render.VisibleLines(text)), LeftOut: left})
	case len(m.Value) > min(maxPartText, maxCallText-p.text):
		text, left := p.cut(string(m.Value))
		p.parts = append(p.parts, callPart{Kind: "text", Name: m.Name, Text: list(render.VisibleLines(text)), LeftOut: left})
	default:
		p.text += len(m.Value)
		p.parts = append(p.parts, callPart{Kind: "data", Name: m.Name, Data: m.Value})
	}
}

// addressNames are what arguments are called that are addresses.
var addressNames = []string{"url", "uri", "href", "link", "endpoint"}

// isAddress says whether a text is to be shown as where it leads: what is called so, or is one address of the web.
func isAddress(name, value string) bool {
	if len(value) > maxPath {
		return false
	}
	if slices.Contains(addressNames, strings.ToLower(name)) {
		return true
	}
	head := strings.ToLower(value[:min(len(value), len("https://"))])
	return (strings.HasPrefix(head, "http://") || head == "https://") && !strings.ContainsAny(value, " \t\r\n")
}

// viewChanged is what the person changed of a call before allowing it.
func viewChanged(arguments, allowed []byte) []changedView {
	changed, _ := wire.Members(allowed) // none: nothing was
	var views []changedView
	for _, m := range changed {
		v := changedView{Name: shortSpans(m.Name), From: []render.Span{}, To: argumentSpans(m.Value)}
		if asked, ok := wire.Get(arguments, m.Name); ok {
			v.From = argumentSpans(asked)
			v.Diff = longChange(m.Name, argumentText(asked), argumentText(m.Value))
		}
		views = append(views, v)
	}
	return views
}

// longChange is the diff of two texts of which the page does not have all: by what it has they may be alike.
func longChange(name, asked, allowed string) *callPart {
	if max(len(asked), len(allowed)) <= maxPartText {
		return nil
	}
	p := partWriter{outside: func(string) bool { return false }}
	p.diff(name, "", "", compare(asked, allowed))
	p.finishDiffs()
	return &p.parts[0]
}

// argumentText is a value as text: a string as it is, anything else as JSON.
func argumentText(raw []byte) string {
	if text, ok := wire.String(raw); ok {
		return text
	}
	return string(raw)
}

func argumentSpans(raw []byte) []render.Span {
	text, _ := render.Cut(argumentText(raw), maxPartText)
	return list(render.VisibleLines(text))
}
