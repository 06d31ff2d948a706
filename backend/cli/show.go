package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
)

func (a *app) showCommand() *cobra.Command {
	var as agentFlags
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show a message, with its history",
		Long: "Shows a message. --json prints it as the hub has it, with `history`, `answerable`, while a decision is kept back\n" +
			"`held_decision` and, where the answer is pushed, `push` beside. With --agent and its token it shows an agent its own message.",
		Example:           "  deskbell show msg_0abc\n  deskbell show msg_0abc --json | jq .response",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeOpen,
		RunE: func(cmd *cobra.Command, args []string) error {
			as = a.actsAs(as)
			return a.reader(cmd.Context(), as, func(get func(string, any) error) error {
				var raw json.RawMessage
				id := url.PathEscape(args[0])
				if err := get("/v1/messages/"+id, &raw); err != nil {
					return fmtID(args[0], err)
				}
				var d detail
				if as.id == "" && as.token == "" {
					if err := get("/api/items/"+id, &d); err != nil {
						return fmtID(args[0], err)
					}
				}
				if a.json {
					return a.printJSON(d.beside(raw))
				}
				return a.show(raw, d)
			})
		},
	}
	as.add(c, "show", asOperator)
	a.addrFlag(c)
	return c
}

// fmtID says which message an error is about.
func fmtID(id string, err error) error {
	if e, ok := client.Refused(err, "not_found", "gone"); ok {
		if id == "" {
			return usagef("the ID is empty")
		}
		e.Message = id + ": " + e.Message
	}
	return err
}

type textSpan = struct {
	T string `json:"t"`
	M string `json:"m"`
}

// detail is what the inbox page knows of an item besides the message.
type detail struct {
	Answerable *struct {
		OK     bool   `json:"ok"`
		Reason string `json:"reason,omitempty"`
	} `json:"answerable"`
	OnExpire string `json:"on_expire"`
	History  []struct {
		At     int64      `json:"at"`
		Actor  string     `json:"actor"`
		Action string     `json:"action"`
		Note   []textSpan `json:"note"`
	} `json:"history"`
	Held *struct {
		CommitAt   instant `json:"commit_at"`
		Resolution string  `json:"resolution"`
	} `json:"held_decision"`
	Push *pushDetail `json:"push"`
	Call *callDetail `json:"call"`
}

// pushDetail is the push of an item's answer.
type pushDetail struct {
	State       string          `json:"state"`
	Host        string          `json:"host"`
	URL         json.RawMessage `json:"url,omitempty"`
	MaxAttempts int             `json:"max_attempts"`
	NextAt      instant         `json:"next_at,omitempty"`
	Attempts    []struct {
		N       int     `json:"n"`
		At      instant `json:"at"`
		Status  int     `json:"status,omitempty"`
		Error   string  `json:"error,omitempty"`
		Snippet string  `json:"snippet,omitempty"`
		Ms      int64   `json:"ms"`
	} `json:"attempts"`
}

func textOfSpans(spans []textSpan) string {
	var b strings.Builder
	for _, s := range spans {
		if s.M == "" {
			b.WriteString(s.T)
		} else {
			b.WriteString("[" + s.T + "]")
		}
	}
	return b.String()
}

// beside puts what the detail knows into the message.
func (d detail) beside(raw json.RawMessage) any {
	var doc map[string]json.RawMessage
	if d.Answerable == nil || json.Unmarshal(raw, &doc) != nil {
		return raw
	}
	put := func(name string, v any) {
		if b, err := client.Bytes(v); err == nil {
			doc[name] = b
		}
	}
	type entry struct {
		At     string `json:"at"`
		Actor  string `json:"actor"`
		Action string `json:"action"`
		Note   string `json:"note,omitempty"`
	}
	history := []entry{}
	for _, h := range d.History {
		history = append(history, entry{fromMs(h.At).UTC().Format(time.RFC3339Nano), h.Actor, h.Action, textOfSpans(h.Note)})
	}
	put("history", history)
	put("answerable", d.Answerable)
	if d.Held != nil {
		put("held_decision", d.Held)
	}
	if d.Push != nil {
		put("push", d.Push)
	}
	return doc
}

func (a *app) show(raw json.RawMessage, d detail) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	w := a.out
	a.tell("%s", m.Title)
	sensitive := ""
	if m.Sensitive {
		sensitive = "yes"
	}
	pairs(w, "id", m.ID, "type", m.Type, "status", m.Status, "agent", line(m.Agent.ID), "run", line(m.Agent.RunID), "project", line(m.Agent.Project),
		"protocol", line(m.Protocol), "priority", m.Priority, "tags", line(strings.Join(m.Tags, " ")), "sensitive", sensitive,
		"received", stamp(parseTime(m.ReceivedAt)), "expires", expires(m, d))
	a.showContent(m, d)
	if r := m.Response.Detail; r.Actor != "" {
		a.tell("\nOutcome: %s by %s, %s", m.Status, r.Actor, stamp(parseTime(r.ResolvedAt)))
		if r.Value != nil {
			a.tell("%s", block(bare(r.Value)))
		}
		if r.Arguments != nil {
			a.tell("\nAllowed with")
			a.showArguments(r.Arguments)
		}
		a.section("Comment", r.Comment)
	} else if d.Held != nil {
		a.tell("\nNot sent yet: %s, goes out %s unless it is taken back", d.Held.Resolution, stamp(d.Held.CommitAt.time()))
	} else if d.Answerable != nil && !d.Answerable.OK && m.Status == "open" {
		a.tell("\nYou cannot answer it: %s", d.Answerable.Reason)
	}
	if len(d.History) > 0 {
		a.tell("\nHistory")
		var rows [][]string
		for _, h := range d.History {
			rows = append(rows, []string{"  " + stamp(fromMs(h.At)), line(h.Actor), line(h.Action), line(textOfSpans(h.Note))})
		}
		table(w, rows)
	}
	a.showPush(d.Push)
	return nil
}

// section writes a text under its title; nothing where there is none.
func (a *app) section(title, text string) {
	if text != "" {
		a.tell("\n%s\n%s", title, block(text))
	}
}

// showContent writes what a message says and asks for.
func (a *app) showContent(m message, d detail) {
	a.section("Body", m.Body)
	for _, p := range m.Context {
		name, _ := p.Metadata["name"].(string)
		title := strings.TrimSpace("Context " + line(name))
		switch {
		case p.Text != nil:
			a.section(title, *p.Text)
		case p.Data != nil:
			a.section(title, string(readable(p.Data)))
		case p.File != nil:
			a.section(title, strings.TrimSpace(p.File.Name+" "+p.File.URI))
		}
	}
	if m.Call != nil {
		a.showCall(m.Call, d.Call)
	}
	if q := m.Request; q != nil {
		a.showRequest(a.text(), q)
	}
	if act := m.Action; act != nil {
		a.section("To do", act.Instructions)
		list := act.Checklist
		if m.Response.Detail.Checklist != nil {
			list = m.Response.Detail.Checklist
		}
		for i, c := range list {
			a.tell("  %d. %s %s", i+1, box(c.Done), c.Text)
		}
		a.section("How one sees that it is done", act.Verification)
	}
}

func expires(m message, d detail) string {
	t := parseTime(m.ExpiresAt)
	if t.IsZero() {
		return ""
	}
	s := stamp(t)
	if m.Status == "open" && d.OnExpire != "" {
		s += " (" + line(d.OnExpire) + ")"
	}
	return s
}

// showRequest writes what a question can be answered with.
func (a *app) showRequest(w io.Writer, q *request) {
	options := q.Options
	if q.Mode == "confirm" && options == nil {
		options = []option{{Value: "approve", Label: "Approve"}, {Value: "deny", Label: "Deny"}}
	}
	switch {
	case q.Mode == "input":
		fmt.Fprintf(w, "\nAnswers are an object of this schema\n%s\n", block(string(readable(q.Schema))))
	case len(options) > 0:
		fmt.Fprintln(w, "\nAnswers")
		var rows [][]string
		for _, o := range options {
			rows = append(rows, []string{"  " + line(o.Value), line(o.Label), line(o.Description)})
		}
		table(w, rows)
	}
	if p := q.Permissions; p != nil && p.AllowEdit != nil && *p.AllowEdit && q.Mode != "input" {
		fmt.Fprintln(w, "  or an answer of your own")
	}
}

func (a *app) showPush(p *pushDetail) {
	if p == nil {
		return
	}
	a.tell("\nPush to %s: %s", p.Host, p.State)
	var rows [][]string
	for _, t := range p.Attempts {
		what := line(t.Error)
		if t.Status != 0 {
			what = "HTTP " + itoa(t.Status) + " " + line(t.Snippet)
		}
		rows = append(rows, []string{"  " + stamp(t.At.time()), what})
	}
	table(a.out, rows)
}
