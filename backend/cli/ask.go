package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
)

// post is what ask, task and notify have in common.
type post struct {
	compose
	waiting
	as agentFlags
}

// waiting says whether a command waits for the end of what it began, and for how long.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (a *app) askCommand() *cobra.Command {
	p := &post{}
	c := a.postCommand(p, "ask")
	c.Short = "Ask the person a question"
	c.Long = `Asks a question and prints its id; with --wait, waits for the answer and prints that and nothing else on stdout
(a string as it is, an object as JSON; with --json always JSON). Without options it asks for yes or no.

Exit codes: 0 answered (without --wait: accepted), 10 declined, 11 expired, 12 cancelled, 13 still open when --timeout
ended, 130 interrupted (the question stays open), 2 bad usage, 1 any other failure.`
	c.Example = "  deskbell ask \"Ship 1.4 to production?\" --option ship=\"Ship it\" --option hold --wait --timeout 30m\n" +
		"  if [ \"$(deskbell ask 'Delete the old backups?' --wait)\" = approve ]; then …\n" +
		"  deskbell ask \"Which port?\" --input port.schema.json --wait | jq .port"
	p.askFlags(c)
	p.answerFlags(c)
	p.waitFlags(c)
	return c
}

func (a *app) taskCommand() *cobra.Command {
	p := &post{}
	c := a.postCommand(p, "task")
	c.Short = "Give the person something to do"
	c.Long = `Gives the person a task and prints its id; with --wait, waits until it is completed or dismissed.

Exit codes: 0 completed (without --wait: accepted), 10 dismissed, 11 expired, 12 cancelled, 13 still open when --timeout
ended, 130 interrupted (the task stays open), 2 bad usage, 1 any other failure.`
	c.Example = "  deskbell task \"Rotate the API key\" --check \"make a new key\" --check \"revoke the old one\" --wait"
	p.taskFlags(c)
	p.answerFlags(c)
	p.waitFlags(c)
	return c
}

func (a *app) notifyCommand() *cobra.Command {
	p := &post{}
	c := a.postCommand(p, "notify")
	c.Short = "Tell the person something"
	c.Long = "Leaves a notice in the person's inbox and prints its id. Nothing is waited for."
	c.Example = "  deskbell notify \"Nightly build is green\" --tag ci\n  make 2>&1 | deskbell notify \"Build log\" --body -"
	return c
}

func (a *app) postCommand(p *post, kind string) *cobra.Command {
	c := &cobra.Command{
		Use:  kind + " TITLE",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.post(cmd.Context(), p, kind, args[0]) },
	}
	p.commonFlags(c)
	p.as.add(c, "act", asOwn)
	a.addrFlag(c)
	return c
}

func (p *waiting) waitFlags(c *cobra.Command) {
	c.Flags().BoolVar(&p.wait, "wait", false, "wait for the end, also across a restart of the hub")
	c.Flags().DurationVar(&p.timeout, "timeout", 0, "with --wait: give up after this `DURATION` (90s, 2h); what was sent stays as it is")
}

func (p *waiting) check() error {
	switch {
	case p.timeout != 0 && !p.wait:
		return usagef("--timeout goes with --wait")
	case p.timeout < 0:
		return usagef("--timeout must not be negative")
	}
	return nil
}

func (a *app) post(ctx context.Context, p *post, kind, title string) error {
	if err := p.waiting.check(); err != nil {
		return err
	}
	ag, err := a.agent(p.as)
	if err != nil {
		return err
	}
	started := time.Now()
	e, err := p.build(a, kind, title, ag.id, started, func() (string, error) { return a.operatorName(ctx, ag) })
	if err != nil {
		return err
	}
	w := &waiter{app: a, agent: ag, started: started, timeout: p.timeout, patience: 10 * time.Second, sending: true}
	if p.wait {
		w.patience = 0 // as long as the wait itself
	}
	ag.Again = w.again
	ack, err := w.submit(ctx, e)
	if err != nil {
		return err
	}
	if p.wait {
		a.say("%s: waiting for %s", ack.ID, map[string]string{"ask": "the answer", "task": "it to be done"}[kind])
		return w.wait(ctx, ack.ID)
	}
	if a.json {
		return a.printJSON(ack.Raw)
	}
	a.tell("%s", ack.ID)
	return nil
}

// operatorName is the person as the hub's capability document names them.
func (a *app) operatorName(ctx context.Context, ag *agent) (string, error) {
	base, err := a.find(ag.cfg)
	if err != nil {
		return "", err
	}
	var doc struct {
		Operator string `json:"operator"`
	}
	if err := a.dial(ag.cfg, base, "").Call(ctx, http.MethodGet, "/.well-known/ma2h", nil, &doc); err != nil {
		return "", err
	}
	if doc.Operator == "" {
		return "", fmt.Errorf("the hub at %s does not say who its operator is: name who may answer with --resolver", base)
	}
	return doc.Operator, nil
}

// waiter carries one message to the hub and its answer back, whatever becomes of the hub in between.
type waiter struct {
	*app
	agent    *agent
	started  time.Time
	timeout  time.Duration // 0: none
	patience time.Duration // how long a hub that does not answer is tried; 0: as long as it takes
	sending  bool
}

// again decides whether a request that failed for now is tried again, and says so.
func (w *waiter) again(err error, attempt int, pause time.Duration) error {
	var none *noHub
	refused, ok := client.Refused(err)
	switch {
	case !ok && w.sending && attempt == 0 && errors.As(err, &none):
		return err
	case !ok && w.patience > 0 && time.Since(w.started) > w.patience:
		return err
	case !ok && w.sending && w.timeout > 0 && time.Since(w.started) > w.timeout:
		return err
	case !ok && attempt == 0:
		w.say("%s. Trying on.", err)
	case ok && refused.Status == http.StatusTooManyRequests && w.patience > 0:
		return err
	case ok && refused.Status == http.StatusTooManyRequests:
		w.sayPause(refused, attempt, pause)
	}
	return nil
}

// submit sends the message until the hub took or refused it.
func (w *waiter) submit(ctx context.Context, e *envelope) (client.Receipt, error) {
	for {
		body, err := client.Bytes(e)
		if err != nil {
			return client.Receipt{}, err
		}
		ack, err := w.agent.Submit(ctx, body)
		if c, ok := client.Refused(err, "idempotency_conflict"); ok && w.sameButTime(ctx, e, c) {
			w.say("A message with this key was sent before: going on with that one.")
			continue
		}
		w.sending = false
		return ack, err
	}
}

// sameButTime makes e the message that its key stands for already, where the two differ in nothing but when they were
// made. A script that is run again asks the same question, not a new one.
func (w *waiter) sameButTime(ctx context.Context, e *envelope, conflict *client.Error) bool {
	for _, f := range conflict.Details {
		if f.Pointer != "/created_at" && f.Pointer != "/expires_at" {
			return false
		}
	}
	first, ok := w.byKey(ctx, e.Key)
	if !ok || len(conflict.Details) == 0 || (e.ExpiresAt == "") != (first.ExpiresAt == "") {
		return false
	}
	e.CreatedAt, e.ExpiresAt = first.CreatedAt, first.ExpiresAt
	return true
}

func (w *waiter) byKey(ctx context.Context, key string) (message, bool) {
	cursor := ""
	for range 20 { // pages of the agent's own messages, newest first
		var page messagePage
		if w.agent.Call(ctx, http.MethodGet, "/v1/messages?limit=500"+cursor, nil, &page) != nil {
			return message{}, false
		}
		if i := slices.IndexFunc(page.Messages, func(m message) bool { return m.Key == key }); i >= 0 {
			return page.Messages[i], true
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	return message{}, false
}

// wait pulls until the message ends, and reports how.
func (w *waiter) wait(ctx context.Context, id string) error {
	left := time.Duration(0)
	if w.timeout > 0 {
		left = max(w.timeout-time.Since(w.started), 1)
	}
	m, err := w.agent.Wait(ctx, id, left)
	switch {
	case ctx.Err() != nil:
		return w.interrupted(id)
	case err == nil && m.Open(), client.Retryable(err):
		return w.stillOpen(id, err)
	case err != nil:
		return fmt.Errorf("%s: %w", id, err)
	}
	var end message
	if err := json.Unmarshal(m.Raw, &end); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return w.report(ctx, end)
}

func (w *waiter) interrupted(id string) error {
	w.say("Interrupted. %s stays open; `deskbell cancel %s` takes a question back.", id, id)
	return &exit{code: exitInterrupted}
}

func (w *waiter) stillOpen(id string, err error) error {
	if err != nil {
		w.say("%s: the time is up and the hub does not answer; as far as is known it is still open.", id)
	} else {
		w.say("%s: the time is up and it is still open.", id)
	}
	return &exit{code: exitStillOpen}
}

// report prints the answer on stdout, everything else on stderr, and acknowledges that it is here.
func (w *waiter) report(ctx context.Context, m message) error {
	d := m.Response.Detail
	if v := d.Value; len(v) > 0 {
		text := string(v)
		if !w.json {
			text = bare(v)
		}
		if _, err := fmt.Fprintln(w.out, text); err != nil {
			return err
		}
	}
	how := m.Status
	if d.Actor == client.DefaultActor { // "defaulted" is bound by nothing
		how += ", the default answer was taken"
	}
	if d.Edited {
		how += ", with an answer of their own"
	}
	w.say("%s: %s by %s", m.ID, how, d.Actor)
	if d.Comment != "" {
		w.say("comment: %s", lines(d.Comment))
	}
	for _, c := range d.Checklist {
		w.say("%s %s", box(c.Done), c.Text)
	}
	quick, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = w.agent.Acknowledge(quick, m.ID, "") // a courtesy: the answer is here either way
	switch m.Status {
	case "answered", "completed":
		return nil
	case "declined", "dismissed":
		return &exit{code: exitDeclined}
	case "expired":
		return &exit{code: exitExpired}
	case "cancelled":
		return &exit{code: exitCancelled}
	}
	return fmt.Errorf("%s ended in a way this version does not know: %s", m.ID, strings.ToValidUTF8(m.Status, "?"))
}

func box(done bool) string {
	if done {
		return "[x]"
	}
	return "[ ]"
}
