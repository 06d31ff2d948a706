package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

type presence struct {
	State    string  `json:"state"`
	LastSeen instant `json:"last_seen,omitempty"`
}

// fleetAgent is an agent with what is known of where it is.
type fleetAgent struct {
	agentRow
	Presence presence `json:"presence"`
	Stopped  *struct {
		At int64 `json:"at"`
	} `json:"stopped"`
	EndedAt  int64 `json:"ended_at"` // of one that has ended for good
	Waiting  int   `json:"entries_waiting"`
	Sessions []struct {
		ID       string   `json:"id"`
		State    string   `json:"state"`
		Presence presence `json:"presence"`
		Waiting  int      `json:"entries_waiting"`
	} `json:"sessions"`
}

func fleetOf(ctx context.Context, h *hub) ([]fleetAgent, error) {
	var doc struct {
		Agents []fleetAgent `json:"agents"`
	}
	return doc.Agents, h.Call(ctx, http.MethodGet, "/api/fleet", nil, &doc)
}

func (a *app) stopCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop an agent: close its sessions and let it open no other",
		Long: "Closes all sessions of an agent as the operator and keeps it from opening others until `deskbell agent resume`. What\n" +
			"was sent to one of its sessions alone and is not acknowledged bounces, even if it was collected: open tasks among\n" +
			"it end dismissed, open asks cancelled. Asks and tasks that were acknowledged stay open, and whoever sent them waits on.\n" +
			"Its credentials still work otherwise (`deskbell agent revoke` ends them).\n\n" +
			"An agent of ACP (acp/…) ends with all agents below it, and those that were spawned for good: what waits for them bounces.\n" +
			"A session of pi (pi/…) stops what it is doing now; its process goes on, and does what it is sent next. Of\n" +
			"one that has ended it is said that there was nothing to stop.",
		Example:           "  deskbell agent stop deploybot",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			var done stopped
			raw, err := a.onAgent(cmd.Context(), args[0], "stop")
			if err == nil {
				err = json.Unmarshal(raw, &done)
			}
			if err != nil {
				return err
			}
			return a.done(raw, "%s", done.words(args[0]))
		},
	}
	a.addrFlag(c)
	return c
}

// stopped is what a stop did.
type stopped struct {
	Closed int  `json:"sessions_closed"`
	Agents int  `json:"agents_ended"` // agents of ACP that ended for good, itself among them
	Ended  bool `json:"ended"`        // so did the one that was stopped: it cannot be resumed
	// Revoked is an agent that needs new credentials, stopped or not.
	Revoked bool `json:"revoked"`
}

func (s stopped) words(id string) string {
	switch {
	case piSession(id) && s.Ended:
		return fmt.Sprintf("%s had ended already: there was nothing to stop.", id)
	case piSession(id):
		return fmt.Sprintf("Stopped what %s was doing. It runs on, and does what it is sent next; there is nothing to resume.", id)
	case s.Ended && s.Agents == 0:
		return fmt.Sprintf("%s had ended already. Nothing resumes it.", id)
	case s.Ended && s.Agents == 1:
		return fmt.Sprintf("Stopped %s. It has ended for good: its principal can only make another.", id)
	case s.Ended:
		return fmt.Sprintf("Stopped %s and %s below it. They have ended for good: their principal can only make others.", id, plural(s.Agents-1, "agent"))
	}
	var did []string
	if !acpAgent(id) {
		did = append(did, plural(s.Closed, "session")+" closed")
	}
	if s.Agents > 0 {
		did = append(did, plural(s.Agents, "agent")+" of it ended for good")
	}
	text := "Stopped " + id
	if len(did) > 0 {
		text += ": " + strings.Join(did, ", ")
	}
	if s.Revoked {
		return text + fmt.Sprintf(". It is revoked, too: to work again it needs `deskbell agent resume %s` and `deskbell agent add %s`.", id, id)
	}
	return text + fmt.Sprintf(". `deskbell agent resume %s` lets it work again.", id)
}

// acpAgent says whether an agent is one of ACP, which has no sessions.
func acpAgent(id string) bool { return strings.HasPrefix(id, "acp/") }

// piSession says whether an agent is a session of pi, of which a stop ends what it does now and nothing else.
func piSession(id string) bool { return strings.HasPrefix(id, "pi/") }

func (a *app) resumeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "resume ID",
		Short: "Let a stopped agent work again",
		Long: "Lifts a stop. A peer that proves itself in another protocol (acs/…, map/…, pi/…, acp/…) and was revoked is let in\n" +
			"again, too: there is no credential that it could be given anew. An agent of ACP that was spawned has ended for good\n" +
			"once it was stopped, and cannot be resumed.",
		Example:           "  deskbell agent resume deploybot",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := a.onAgent(cmd.Context(), args[0], "resume")
			if err != nil {
				return err
			}
			if acpAgent(args[0]) {
				return a.done(raw, "%s goes on with its next request.", args[0])
			}
			if piSession(args[0]) {
				return a.done(raw, "%s may run, and does what it is sent: a stop keeps no session of pi from that.", args[0])
			}
			var s stopped
			if err := json.Unmarshal(raw, &s); err != nil {
				return err
			}
			if s.Revoked {
				return a.done(raw, "%s is stopped no more, but revoked: `deskbell agent add %s` gives it new credentials.", args[0], args[0])
			}
			return a.done(raw, "%s may open sessions again.", args[0])
		},
	}
	a.addrFlag(c)
	return c
}

// onAgent does something to an agent as the operator.
func (a *app) onAgent(ctx context.Context, id, act string) (answer json.RawMessage, err error) {
	err = a.asOperator(ctx, func(h *hub) error {
		return fmtID(id, h.Call(ctx, http.MethodPost, "/v1/agents/"+url.PathEscape(id)+"/"+act, nil, &answer))
	})
	return answer, err
}

func (a *app) sessionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sessions [ID]",
		Short: "List the sessions of agents, live ones and those that ended lately",
		Long: "Lists sessions: when each was last active, until when the session holds without a sign of life (lease), and\n" +
			"what it says of itself (label). --json prints {\"sessions\":[…]} with the sessions as the hub has them, and `presence`.",
		Example:           "  deskbell agent sessions\n  deskbell agent sessions deploybot --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			return a.asOperator(cmd.Context(), func(h *hub) error { return a.listSessions(cmd.Context(), h, id) })
		},
	}
	a.addrFlag(c)
	return c
}

type sessionRow struct {
	ID         string    `json:"id"`
	Agent      string    `json:"agent_id"`
	State      string    `json:"state"`
	ExpiresAt  time.Time `json:"expires_at"`
	ClosedAt   time.Time `json:"closed_at"`
	ByOperator bool      `json:"closed_by_operator"`
	Label      string    `json:"label"`
	Project    string    `json:"project"`
}

func (a *app) listSessions(ctx context.Context, h *hub, id string) error {
	var doc struct {
		Sessions []json.RawMessage `json:"sessions"`
	}
	if err := h.Call(ctx, http.MethodGet, "/v1/sessions", nil, &doc); err != nil {
		return err
	}
	agents, err := fleetOf(ctx, h)
	if err != nil {
		return err
	}
	there, known := map[string]presence{}, id == ""
	for _, ag := range agents {
		known = known || ag.AgentID == id
		for _, s := range ag.Sessions {
			there[s.ID] = s.Presence
		}
	}
	if !known {
		return fmt.Errorf("%s: no such agent", id)
	}
	list, now := []map[string]json.RawMessage{}, time.Now()
	rows := [][]string{{"SESSION", "AGENT", "STATE", "ACTIVE", "LEASE", "LABEL"}}
	for _, raw := range doc.Sessions {
		var s sessionRow
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		if id != "" && s.Agent != id {
			continue
		}
		if err := json.Unmarshal(raw, &whole); err != nil {
			return err
		}
		p := there[s.ID]
		if whole["presence"], err = json.Marshal(p); err != nil {
			return err
		}
		list = append(list, whole)
		lease := "ends " + ago(s.ExpiresAt, now)
		if !s.ClosedAt.IsZero() {
			lease = "ended " + ago(s.ClosedAt, now)
			if s.ByOperator {
				lease += " by the operator"
			}
		}
		rows = append(rows, []string{line(s.ID), line(s.Agent), line(s.State), p.text(now), lease, line(s.Label)})
	}
	switch {
	case a.json:
		return a.printJSON(map[string]any{"sessions": list})
	case len(list) == 0:
		a.say("No sessions.")
	default:
		table(a.out, rows)
	}
	return nil
}

// text is when somebody was last active, as a table shows it. One that posts and never collects has never listened.
func (p presence) text(now time.Time) string { return ago(p.LastSeen.time(), now) }
