package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/protocol"
)

// reader runs fn with a way to read messages: as the agent the flags name, or as the operator.
func (a *app) reader(ctx context.Context, f agentFlags, fn func(get func(path string, out any) error) error) error {
	if f.id == "" && f.token == "" {
		return a.asOperator(ctx, func(h *hub) error {
			return fn(func(path string, out any) error { return h.Call(ctx, http.MethodGet, path, nil, out) })
		})
	}
	ag, err := a.agent(f)
	if err != nil {
		return err
	}
	return fn(func(path string, out any) error { return ag.Call(ctx, http.MethodGet, path, nil, out) })
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
	fl.StringVar(&f.status, "status", "", "`STATUS` is open, answered, declined, cancelled, expired, completed, dismissed, delivered, or between agents queued, acknowledged or bounced")
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
	if err := oneOf("--status", f.status, "open", "answered", "declined", "cancelled", "expired", "completed", "dismissed", "delivered", "queued", "acknowledged", "bounced"); err != nil {
		return err
	}
	if err := oneOf("--type", f.kind, "ask", "task", "notify"); err != nil {
		return err
	}
	if err := oneOf("--protocol", f.protocol, protocol.Names()...); err != nil {
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
