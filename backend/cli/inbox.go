package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
)

type inboxFlags struct {
	as                  agentFlags
	follow, allowAny    bool
	noAck, rerun        bool
	session, exec       string
	most                int
	wait                time.Duration
	allowFrom           []string
	secretFile, ed25519 string
}

// defaultLabel is what a session says of itself when nobody chose a label.
const defaultLabel = "deskbell inbox"

func (a *app) inboxCommand() *cobra.Command {
	f := &inboxFlags{}
	c := &cobra.Command{
		Use:   "inbox",
		Short: "As an agent, collect the mailbox: verify, print or run, acknowledge",
		Long: `Collects what is in an agent's mailbox, checks each entry (signature, freshness, shape, addressee), prints it, and
acknowledges it. With --follow it goes on with what comes. It acts as the command line's own agent, or as another with
--agent and its token.

--exec runs a command for each entry instead, with the entry as JSON on its standard input, and DESKBELL_KIND,
DESKBELL_ID, DESKBELL_FROM, DESKBELL_TO, DESKBELL_SESSION and DESKBELL_TYPE (of a message: ask, task, notify) in its
environment. Nothing of the entry is on the command line. When the command succeeds the entry is acknowledged, with the
first line of its output as the note; when it fails the entry comes again. No entry is acted on twice: what was done is
remembered in the data folder, and what was cut short by a kill is not run again and acknowledged with a note that says
so (--rerun runs it again, with DESKBELL_AGAIN=1).

Directives of the person are always taken. Messages of other agents come with --session or --follow only, and are
refused, unacknowledged, unless --allow-from or --allow-any says who may write to this agent.

The key that entries are signed with is the own agent's; for another it is in --secret-file (the secret, one a line
while it is being rotated, or the JSON that ` + "`agent add`" + ` and ` + "`pair`" + ` print), DESKBELL_SIGNING_SECRET, or --ed25519.

Exit codes: 0 done, also when there was nothing; 1 an entry could not be verified, a command failed, the operator
stopped the agent, or any other failure; 130 --follow was interrupted; 2 bad usage.`,
		Example: "  deskbell inbox\n  deskbell inbox --wait 5m --json\n" +
			"  deskbell inbox --follow --session \"build machine\" --exec ./handle.sh --allow-from overseer\n" +
			"  DESKBELL_TOKEN=… deskbell inbox --agent deploybot --secret-file deploybot.json",
		Args: func(cmd *cobra.Command, args []string) error {
			// "--session LABEL" leaves the label behind as an argument, because the label may be left out.
			if len(args) == 1 && f.session == defaultLabel {
				f.session = args[0]
				return nil
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.inbox(cmd.Context(), f) },
	}
	f.as.add(c, "collect", asOwn)
	fl := c.Flags()
	fl.BoolVar(&f.follow, "follow", false, "go on with what comes, until interrupted; needs a session, and registers one")
	fl.StringVar(&f.session, "session", "", "register a session, renew it while it is in use, and say `LABEL` of it")
	fl.Lookup("session").NoOptDefVal = defaultLabel
	fl.IntVar(&f.most, "max", 0, "end after `N` entries; 0: no limit")
	fl.DurationVar(&f.wait, "wait", 0, "wait up to this `DURATION` for something to come")
	fl.StringVar(&f.exec, "exec", "", "run `COMMAND` for each entry")
	fl.StringSliceVar(&f.allowFrom, "allow-from", nil, "act on messages of the agent of this `ID`; may be repeated")
	fl.BoolVar(&f.allowAny, "allow-any", false, "act on messages of every agent of this hub")
	fl.BoolVar(&f.noAck, "no-ack", false, "acknowledge nothing: it stays in the mailbox and comes again")
	fl.BoolVar(&f.rerun, "rerun", false, "with --exec: run again what was cut short; the command must bear that")
	fl.StringVar(&f.secretFile, "secret-file", "", "the agent's signing secret is in `FILE` (or DESKBELL_SIGNING_SECRET)")
	fl.StringVar(&f.ed25519, "ed25519", "", "entries are signed with the hub's Ed25519 `KEY`, base64")
	a.addrFlag(c)
	c.MarkFlagsMutuallyExclusive("allow-from", "allow-any")
	c.MarkFlagsMutuallyExclusive("follow", "wait")
	return c
}

// errEnough ends the work after --max entries.
var errEnough = errors.New("that was enough")

func (a *app) inbox(ctx context.Context, f *inboxFlags) (err error) {
	switch {
	case f.most < 0 || f.wait < 0:
		return usagef("--max and --wait must not be negative")
	case f.rerun && f.exec == "":
		return usagef("--rerun goes with --exec")
	}
	ag, err := a.agent(f.as)
	if err != nil {
		return err
	}
	ag.Again = a.tryingOn
	keys, err := ag.keys(f)
	if err != nil {
		return err
	}
	v, err := client.NewVerifier(ag.Client, keys)
	if err != nil {
		return err
	}
	memory := filepath.Join(ag.cfg.Data, "inbox", url.PathEscape(ag.id))
	nonces, err := client.OpenNonces(memory)
	if err != nil {
		return fmt.Errorf("what was seen is remembered in the data folder: %w", err)
	}
	defer func() { err = errors.Join(err, nonces.Close()) }()
	v.Replay = nonces
	r := newReader(a, f)
	consumer := &client.Consumer{Verifier: v, Act: r.act, Tell: r.report, KeepInMailbox: f.noAck}
	consumer.Rerun = f.rerun || f.exec == "" // to print twice does no harm
	switch {
	case f.allowAny:
		consumer.Policy = client.AllowAny
	case f.allowFrom != nil:
		consumer.Policy = client.AllowFrom(f.allowFrom...)
	}
	if !f.noAck || f.exec != "" { // who only looks does nothing that must be remembered
		done, err := client.OpenDone(memory)
		if err != nil {
			return fmt.Errorf("what was done is remembered in the data folder: %w", err)
		}
		defer func() { err = errors.Join(err, done.Close()) }()
		consumer.Done = done
	}
	c := &client.Collector{Consumer: consumer, Registered: func(s client.Session) { a.say("Listening as %s (%s).", ag.id, s.ID) }}
	if f.follow && f.session == "" {
		f.session = defaultLabel
	}
	if f.session != "" {
		c.About = &client.About{Label: f.session, Kind: "cli", TTL: 300}
	}
	if f.follow {
		err = c.Follow(ctx)
	} else {
		err = c.Collect(ctx, f.wait)
	}
	switch {
	case errors.Is(err, errEnough):
		err = nil
	case errors.Is(err, client.ErrStopped):
		return fmt.Errorf("the operator stopped %s or closed its session. A person must lift that: `deskbell agent resume %s`", ag.id, ag.id)
	case err != nil:
		return err
	}
	if !r.any {
		a.say("%s", nothingNow(ag.id, f.session != ""))
	}
	if r.failed {
		err = &exit{code: exitFailure}
	}
	return err
}

// nothingNow is said where nothing came. It does not say that nothing is there: what was collected and not acknowledged is
// out of sight for a time, and much comes to sessions alone.
func nothingNow(agent string, session bool) string {
	says := "Nothing to collect now for " + agent + ". What was collected and not acknowledged comes again after the hub's visibility time-out"
	if !session {
		says += "; messages of other agents, answers and what is for a session come with --session"
	}
	return says + "."
}
