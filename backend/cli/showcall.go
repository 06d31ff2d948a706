package cli

import (
	"encoding/json"
	"strings"

	"deskbell/backend/wire"
)

// callDetail is what the inbox page knows of a call besides what it asks for.
type callDetail struct {
	Prompt []textSpan `json:"prompt"`
	Steps  []struct {
		At   int64      `json:"at"`
		What string     `json:"what"`
		Text []textSpan `json:"text"`
	} `json:"steps"`
	Parts []struct {
		Name    string     `json:"name"`
		Path    []textSpan `json:"path"`
		Risks   []string   `json:"risks"`
		Outside bool       `json:"outside"`
	} `json:"parts"`
	Warning string `json:"warning"`
}

// showCall writes what an agent asks leave for. d is nil for an agent that looks at its own call.
func (a *app) showCall(c *call, d *callDetail) {
	a.tell("\nAsks leave for %s", c.Tool)
	pairs(a.text(), "  provider", line(c.Provider), "  version", line(c.Version), "  platform", line(c.Platform), "  for", line(c.Addressee), "  folder", line(c.Folder), "  session", line(c.Session), "  permission", line(c.Permission),
		"  editable", line(strings.Join(c.Editable, " ")))
	a.lookTwice(d)
	a.tell("\nArguments")
	a.showArguments(c.Arguments)
	if len(c.Extra) > 0 {
		a.tell("\nBesides its arguments it says")
		a.showArguments(c.Extra)
	}
	a.showWay(d)
}

// lookTwice writes what the page marks of a call.
func (a *app) lookTwice(d *callDetail) {
	if d == nil {
		return
	}
	var marks []string
	for _, p := range d.Parts {
		name := p.Name
		if len(p.Path) > 0 {
			name = textOfSpans(p.Path)
		}
		for _, risk := range p.Risks {
			marks = append(marks, name+": "+risk)
		}
		if p.Outside {
			marks = append(marks, name+": outside the folder in which the agent works")
		}
	}
	if d.Warning != "" {
		marks = append(marks, d.Warning)
	}
	if len(marks) > 0 {
		a.tell("\nLook twice")
	}
	for _, m := range marks {
		a.tell("  %s", line(m))
	}
}

// showWay writes how the agent came to its call.
func (a *app) showWay(d *callDetail) {
	if d == nil {
		return
	}
	a.section("What it was told", textOfSpans(d.Prompt))
	var rows [][]string
	for _, s := range d.Steps {
		rows = append(rows, []string{"  " + stamp(fromMs(s.At)), line(s.What), line(textOfSpans(s.Text))})
	}
	if len(rows) > 0 {
		a.tell("\nWhat it did since")
		table(a.text(), rows)
	}
}

// showArguments writes each argument by its name: texts as they are, anything else as JSON.
func (a *app) showArguments(raw json.RawMessage) {
	arguments, _ := wire.Members(raw) // the hub has checked them; none where there are none
	for _, m := range arguments {
		text := bare(m.Value)
		if !strings.Contains(text, "\n") {
			a.tell("  %s: %s", m.Name, text)
			continue
		}
		a.tell("  %s:", m.Name)
		a.tell("%s", block(text))
	}
}
