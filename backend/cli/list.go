package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// reader runs fn with a way to read messages: as the agent the flags name, or as the operator.
func (a *app) reader(ctx context.Context, f agentFlags, fn func(get func(path string, out any) error) error) error {
	if f.id == "" && f.token == "" {
		return a.asOperator(ctx, func(h *hub) error {
			return fn(func(path string, out any) error { return h.call(ctx, http.MethodGet, path, nil, out) })
		})
	}
	ag, err := a.agent(f)
	if err != nil {
		return err
	}
	return fn(func(path string, out any) error { return ag.call(ctx, http.MethodGet, path, nil, out) })
}

type listFlags struct {
	as                                    agentFlags
	status, kind, from, protocol, q, next string
	limit                                 int
}

func (a *app) listCommand() *cobra.Command {
	f := &listFlags{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List messages, newest first",
		Long: "Lists messages, newest first. --json prints {\"messages\":[…],\"next_cursor\"} with the messages as the hub has them\n" +
			"(--cursor goes on from there). With --as and its token it lists an agent's own messages.",
		Example: "  deskbell list --status open\n  deskbell list --type ask --agent deploybot --search production --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.status, "status", "", "`STATUS` is open, answered, declined, cancelled, expired, completed, dismissed or delivered")
	fl.StringVar(&f.kind, "type", "", "`TYPE` is ask, task or notify")
	fl.StringVar(&f.from, "agent", "", "only what the agent of this `ID` sent")
	fl.StringVar(&f.protocol, "protocol", "", "only what came in this `PROTOCOL` (ma2h, acs, map, pi, acp)")
	fl.StringVar(&f.q, "search", "", "only what `WORDS` are found in")
	fl.IntVar(&f.limit, "limit", 50, "at most `N` messages; 0: all")
	fl.StringVar(&f.next, "cursor", "", "go on from the next_cursor of a list before (`CURSOR`)")
	fl.StringVar(&f.as.id, "as", "", "list as the agent of this `ID`: its own messages; needs its token")
	fl.StringVar(&f.as.token, "token", "", "the `TOKEN` for --as (or DESKBELL_TOKEN)")
	a.addrFlag(c)
	return c
}

func (a *app) list(ctx context.Context, f *listFlags) error {
	if f.limit < 0 {
		return usagef("--limit must not be negative")
	}
	if err := oneOf("--status", f.status, "open", "answered", "declined", "cancelled", "expired", "completed", "dismissed", "delivered"); err != nil {
		return err
	}
	if err := oneOf("--type", f.kind, "ask", "task", "notify"); err != nil {
		return err
	}
	if f.as.id == "" && f.as.token != "" {
		return usagef("--token goes with --as")
	}
	q := url.Values{}
	for name, v := range map[string]string{"status": f.status, "type": f.kind, "agent": f.from, "protocol": f.protocol, "q": f.q} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return a.reader(ctx, f.as, func(get func(string, any) error) error {
		all, next := []json.RawMessage{}, f.next
		for {
			n := 500
			if f.limit > 0 {
				n = min(n, f.limit-len(all))
			}
			q.Set("limit", strconv.Itoa(n))
			if next != "" {
				q.Set("cursor", next)
			}
			var page struct {
				Messages []json.RawMessage `json:"messages"`
				Next     string            `json:"next_cursor"`
			}
			if err := get("/v1/messages?"+q.Encode(), &page); err != nil {
				return err
			}
			all, next = append(all, page.Messages...), page.Next
			if next == "" || len(all) == f.limit {
				break
			}
		}
		if a.json {
			doc := map[string]any{"messages": all, "next_cursor": nil}
			if next != "" {
				doc["next_cursor"] = next
			}
			return a.printJSON(doc)
		}
		return a.printList(all, next)
	})
}

func oneOf(flag, v string, words ...string) error {
	for _, w := range words {
		if v == w || v == "" {
			return nil
		}
	}
	return usagef("%s: %q is not one of %s", flag, v, strings.Join(words, ", "))
}

func (a *app) printList(all []json.RawMessage, next string) error {
	if len(all) == 0 {
		a.say("Nothing found.")
		return nil
	}
	rows := [][]string{{"ID", "STATUS", "TYPE", "PRIORITY", "AGENT", "WHEN", "TITLE"}}
	for _, raw := range all {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		at := m.ReceivedAt
		if at == "" {
			at = m.CreatedAt
		}
		priority := m.Priority
		if priority == "" {
			priority = "normal"
		}
		rows = append(rows, []string{m.ID, m.Status, m.Type, priority, line(m.Agent.ID), ago(parseTime(at), time.Now()), line(m.Title)})
	}
	table(a.out, rows)
	if next != "" {
		a.say("There are more: --limit 0 lists all.")
	}
	return nil
}

func (a *app) showCommand() *cobra.Command {
	var as agentFlags
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show a message, with its history",
		Long: "Shows a message. --json prints it as the hub has it, with `history`, `answerable` and, where the answer is pushed,\n" +
			"`push` beside. With --agent and its token it shows an agent its own message.",
		Example:           "  deskbell show msg_0abc\n  deskbell show msg_0abc --json | jq .response",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeOpen,
		RunE: func(cmd *cobra.Command, args []string) error {
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
	as.add(c, "show")
	a.addrFlag(c)
	return c
}

// fmtID says which message an error is about.
func fmtID(id string, err error) error {
	if e, ok := refusedAs(err, "not_found", "gone"); ok {
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
	Push json.RawMessage `json:"push"`
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
		if b, err := marshal(v); err == nil {
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
	section := func(title, text string) {
		if text != "" {
			a.tell("\n%s\n%s", title, block(text))
		}
	}
	section("Body", m.Body)
	for _, p := range m.Context {
		name, _ := p.Metadata["name"].(string)
		title := strings.TrimSpace("Context " + line(name))
		switch {
		case p.Text != nil:
			section(title, *p.Text)
		case p.Data != nil:
			section(title, string(p.Data))
		case p.File != nil:
			section(title, strings.TrimSpace(p.File.Name+" "+p.File.URI))
		}
	}
	if q := m.Request; q != nil {
		a.showRequest(w, q)
	}
	if act := m.Action; act != nil {
		section("To do", act.Instructions)
		list := act.Checklist
		if m.Response.Detail.Checklist != nil {
			list = m.Response.Detail.Checklist
		}
		for i, c := range list {
			a.tell("  %d. %s %s", i+1, box(c.Done), c.Text)
		}
		section("How one sees that it is done", act.Verification)
	}
	if r := m.Response.Detail; r.Actor != "" {
		a.tell("\nOutcome: %s by %s, %s", m.Status, r.Actor, stamp(parseTime(r.ResolvedAt)))
		if r.Value != nil {
			a.tell("%s", block(bare(r.Value)))
		}
		section("Comment", r.Comment)
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
	return a.showPush(d.Push)
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
		fmt.Fprintf(w, "\nAnswers are an object of this schema\n%s\n", block(string(q.Schema)))
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

func (a *app) showPush(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var p struct {
		State    string `json:"state"`
		Host     string `json:"host"`
		Attempts []struct {
			At      int64  `json:"at"`
			Status  int    `json:"status"`
			Error   string `json:"error"`
			Snippet string `json:"snippet"`
		} `json:"attempts"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return errors.New("the hub's answer is not what was expected")
	}
	a.tell("\nPush to %s: %s", p.Host, p.State)
	var rows [][]string
	for _, t := range p.Attempts {
		what := line(t.Error)
		if t.Status != 0 {
			what = "HTTP " + itoa(t.Status) + " " + line(t.Snippet)
		}
		rows = append(rows, []string{"  " + stamp(fromMs(t.At)), what})
	}
	table(a.out, rows)
	return nil
}
