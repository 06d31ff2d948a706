package acp

import (
	"bytes"
	"strings"

	"deskbell/backend/brief"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// says is a title, a body, and whatever else was said as data.
type says struct {
	title, body string
	rest        []inbox.Part
}

// titles and bodies are the members of a payload that read as such, best first.
var (
	titles = []string{"title", "subject"}
	bodies = []string{"text", "message", "body"}
)

// read finds in a payload what reads as title and body. What it does not find is shown as data, never dropped.
func read(payload []byte, fallback string) says {
	var s says
	used := map[string]bool{}
	first := func(names []string) string {
		for _, name := range names {
			if text := wire.Text(payload, name); strings.TrimSpace(text) != "" {
				used[name] = true
				return text
			}
		}
		return ""
	}
	title, body := first(titles), first(bodies)
	switch {
	case title != "":
		s.title, s.body = brief.Clip(brief.Line(title), maxTitle), body
		if s.title != title && body == "" {
			s.body = title
		}
	case body != "":
		s.title = firstLine(body, fallback)
		if s.title != body {
			s.body = body
		}
	default:
		s.title = fallback
	}
	s.body = brief.Clip(s.body, maxBodyText)
	members, _ := wire.Members(payload) // it passed its schema
	var rest []wire.Member
	for _, m := range members {
		text, _ := wire.String(m.Value)
		cut := brief.Line(text) != s.title && text != s.body // there was no room for all of it
		if !used[m.Name] || cut {
			rest = append(rest, m)
		}
	}
	s.rest = data(wire.Compose(rest))
	return s
}

// data is an object as something to be shown; nothing where it says nothing.
func data(object []byte) []inbox.Part {
	if len(object) == 0 || bytes.Equal(object, []byte("{}")) {
		return nil
	}
	return []inbox.Part{{Data: object}}
}

// beyond is a text as data where it is longer than what is shown of it as text.
func beyond(name, text string, shown int) []inbox.Part {
	if len(text) <= shown {
		return nil
	}
	return data(wire.Compose([]wire.Member{str(name, text)}))
}

// toolData is what a use of a tool says besides its title: the input, whatever else was said, and the tool where the title has
// no room for it.
func toolData(q *request) []inbox.Part {
	return append(append(data(q.value("input")), q.also()...), beyond("tool", q.text("tool"), maxTitle)...)
}

// firstLine is the first line of a text that has any, as a title.
func firstLine(text, fallback string) string {
	for line := range strings.Lines(text) {
		if line = brief.Line(line); line != "" {
			return brief.Clip(line, maxTitle)
		}
	}
	return brief.Clip(brief.Line(fallback), maxTitle)
}
