package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
)

type tellFlags struct {
	compose
	waiting
	session string
}

func (a *app) tellCommand() *cobra.Command {
	f := &tellFlags{}
	c := &cobra.Command{
		Use:   "tell AGENT TITLE",
		Short: "Send an agent a directive",
		Long: `Sends a directive, as the operator, to an agent's mailbox and prints its id. On stderr it says beforehand when the
agent was last active: it gets it when it next looks. With --session, or as AGENT#SESSION, only that session gets it.

With --wait it waits until the agent has acknowledged it, and prints the agent's note and nothing else on stdout
(with --json the directive with its delivery).

Exit codes: 0 acknowledged (without --wait: sent), 10 refused: the note says why, 11 its time ended without a word, collected or not, 12 bounced:
whoever it was for is gone, 13 still waiting when --timeout ended, 130 interrupted (the directive stays), 2 bad usage,
1 any other failure.`,
		Example: "  deskbell tell deploybot \"Pause deploys\" --body \"We are mid-incident.\" --priority urgent\n" +
			"  deskbell tell deploybot \"What are you doing?\" --wait --timeout 2m\n" +
			"  git log -1 | deskbell tell reviewer \"Look at this\" --body - --expires 1h",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeAgents,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.tellAgent(cmd.Context(), f, args[0], args[1]) },
	}
	f.textFlags(c)
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "for this session of the agent alone (`ID`; `deskbell agent sessions` lists them)")
	fl.StringVar(&f.expires, "expires", "", "until when it is worth anything: a duration (`TIME` is 90s, 2h) or an RFC 3339 time")
	f.waitFlags(c)
	a.addrFlag(c)
	return c
}

// directive is what is sent.
type directive struct {
	To        string   `json:"to"`
	Title     string   `json:"title"`
	Body      string   `json:"body,omitempty"`
	Priority  string   `json:"priority,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	ExpiresAt string   `json:"expires_at,omitempty"`
	Sensitive bool     `json:"sensitive,omitempty"`
}

func (a *app) tellAgent(ctx context.Context, f *tellFlags, id, title string) error {
	started := time.Now()
	err := errors.Join(f.waiting.check(), oneOf("--priority", f.priority, "low", "normal", "high", "urgent"))
	if err != nil {
		return err
	}
	id, session, err := f.addressee(id)
	if err != nil {
		return err
	}
	d := directive{To: "agent:" + id, Title: title, Priority: f.priority, Tags: f.tags, Sensitive: f.sensitive}
	if session != "" {
		d.To += "#" + session
	}
	if d.Body, err = f.texts(a, title); err != nil {
		return err
	}
	if d.ExpiresAt, err = expiry(f.expires, started); err != nil {
		return err
	}
	var sent client.Directive
	err = a.asOperator(ctx, func(h *hub) error {
		a.sayPresence(ctx, h, id, session)
		sent, err = h.Tell(ctx, d)
		if _, ok := client.Refused(err, "unknown_destination"); ok {
			if session != "" {
				return fmt.Errorf("there is no %s: `deskbell agent sessions` shows what there is", d.To)
			}
			return fmt.Errorf("no %s is enrolled: `deskbell agent list` shows who is", d.To)
		}
		if _, ok := client.Refused(err, "destination_gone"); ok && session == "" {
			return fmt.Errorf("%s has ended: nothing reaches it any more, and nothing was sent", id)
		} else if ok {
			return fmt.Errorf("session %s of %s has ended: nothing reaches it any more, and nothing was sent", session, id)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case f.wait:
		return a.awaitWord(ctx, f, sent.ID, started)
	case a.json:
		return a.printJSON(sent.Raw)
	}
	a.tell("%s", sent.ID)
	return nil
}

// addressee is who is meant: an agent, or with --session or as AGENT#SESSION one session of it.
func (f *tellFlags) addressee(to string) (id, session string, err error) {
	id, session = strings.TrimPrefix(to, "agent:"), f.session
	if name, named, ok := strings.Cut(id, "#sess_"); ok {
		if session != "" {
			return "", "", usagef("%s names a session already: leave --session out", to)
		}
		id, session = name, "sess_"+named
	}
	return id, session, nil
}

// sayPresence says whether somebody is there to read what is about to be sent. Of what the hub refuses it says nothing.
func (a *app) sayPresence(ctx context.Context, h *hub, id, session string) {
	agents, err := fleetOf(ctx, h)
	if err != nil {
		a.say("Whether %s is listening cannot be told: %s", id, err)
		return
	}
	i := slices.IndexFunc(agents, func(ag fleetAgent) bool { return ag.AgentID == id })
	if i < 0 || agents[i].EndedAt != 0 || agents[i].RevokedAt != 0 {
		return
	}
	ag := agents[i]
	says := presenceWords(id, ag.Presence, "It gets this when it next looks.", "It gets this if it ever looks.")
	if session != "" {
		says = ag.sessionWords(session)
	}
	switch {
	case says == "":
		return
	case h.offline && session != "":
		says = fmt.Sprintf("No hub is running: session %s of %s gets this if one does before its lease ends; otherwise this bounces.", session, id)
	case h.offline:
		says = fmt.Sprintf("No hub is running: %s can get it when one does.", id)
	}
	a.say("%s", says)
	if ag.Stopped != nil {
		a.say("%s is stopped: `deskbell agent resume %s` lets it work again.", id, id)
	}
}

// sessionWords say whether one session listens, "" of one that is not there or has ended: nothing reaches that.
func (ag fleetAgent) sessionWords(session string) string {
	for _, s := range ag.Sessions {
		if s.ID == session && s.State == "active" {
			const ends = "It gets this if it looks before its lease ends; otherwise this bounces."
			return presenceWords("session "+session+" of "+ag.AgentID, s.Presence, ends, ends)
		}
	}
	return ""
}

// presenceWords say when somebody was last active, and what follows where that is long ago, or never was.
func presenceWords(who string, p presence, away, never string) string {
	switch p.State {
	case "online":
		return fmt.Sprintf("%s was active %s.", who, ago(p.LastSeen.time(), time.Now()))
	case "offline":
		return fmt.Sprintf("%s was last active %s. %s", who, ago(p.LastSeen.time(), time.Now()), away)
	}
	return fmt.Sprintf("%s has never listened. %s", who, never)
}

// awaitWord waits for what the agent says, and reports it.
func (a *app) awaitWord(ctx context.Context, f *tellFlags, id string, started time.Time) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	a.say("%s: waiting for its acknowledgment", id)
	c := a.client(cfg, "", "")
	c.Where = func(context.Context, string) (string, string, error) {
		base, err := a.find(cfg)
		if err != nil {
			return "", "", err
		}
		token, err := operatorToken(cfg.Data)
		return base, token, err
	}
	c.Again = a.tryingOn
	left := time.Duration(0)
	if f.timeout > 0 {
		left = max(f.timeout-time.Since(started), 1)
	}
	d, err := c.Outcome(ctx, id, left)
	switch {
	case ctx.Err() != nil:
		a.say("Interrupted. %s stays in the mailbox.", id)
		return &exit{code: exitInterrupted}
	case client.Retryable(err):
		a.say("%s: the time is up and the hub does not answer; as far as is known it still waits.", id)
		return &exit{code: exitStillOpen}
	case err != nil:
		return fmt.Errorf("%s: %w", id, err)
	}
	if a.json {
		if err := a.printJSON(d.Raw); err != nil {
			return err
		}
	} else if d.Delivery.Note != "" {
		a.tell("%s", lines(d.Delivery.Note))
	}
	switch state := d.Delivery.State; {
	case state == "acknowledged":
		a.say("%s: acknowledged", id)
		return nil
	case !d.Over(time.Now()):
		a.say("%s: the time is up and it is still %s.", id, state)
		return &exit{code: exitStillOpen}
	case state == "expired": // MA2H §14.2: what was delivered does not expire
		a.say("%s: its time ended before it was delivered%s", id, seenWords(ctx, c, d))
		return &exit{code: exitExpired}
	case state == "delivered":
		a.say("%s: it was collected, and its time ended without a word", id)
		return &exit{code: exitExpired}
	case state == "bounced" && d.Delivery.Note != "":
		a.say("%s: refused", id)
		return &exit{code: exitDeclined}
	case state == "bounced":
		collected := "it was never collected" + seenWords(ctx, c, d)
		if d.Delivery.Prior == "delivered" {
			collected = "it was collected, and nobody said a word"
		}
		a.say("%s: bounced: it reaches nobody any more; %s", id, collected)
		return &exit{code: exitCancelled}
	}
	return fmt.Errorf("%s ended in a way this version does not know: %s", id, d.Delivery.State)
}

// seenWords say of a directive that never was delivered whether anybody can have read it all the same: a stream shows
// what it does not prove to have arrived. Only the hub's own page is told that.
func seenWords(ctx context.Context, c *client.Client, d client.Directive) string {
	agent, _, _ := strings.Cut(strings.TrimPrefix(d.To, "agent:"), "#sess_")
	quick, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var sent struct {
		Directives []struct {
			ID    string `json:"id"`
			Shown bool   `json:"shown"`
		} `json:"directives"`
	}
	if c.Call(quick, http.MethodGet, "/api/directives?limit=500&agent="+url.QueryEscape(agent), nil, &sent) == nil {
		for _, e := range sent.Directives {
			switch {
			case e.ID == d.ID && e.Shown:
				return "; it was sent to it, and may have been read"
			case e.ID == d.ID:
				return "; nobody has seen it"
			}
		}
	}
	return "; whether it was read is not known"
}

// tryingOn says once that a hub does not answer and is tried on.
func (a *app) tryingOn(err error, attempt int, pause time.Duration) error {
	if e, ok := client.Refused(err); ok && e.Status == http.StatusTooManyRequests {
		a.sayPause(err, attempt, pause)
	} else if attempt == 0 {
		a.say("%s. Trying on.", err)
	}
	return nil
}

// sayPause says that a hub asked for time, and how long it gets. Of pauses too short to name only the first is told.
func (a *app) sayPause(err error, attempt int, pause time.Duration) {
	switch {
	case pause >= time.Second:
		a.say("%s: trying again in %s", err, span(pause))
	case attempt == 0:
		a.say("%s: trying again soon", err)
	}
}
