package cli

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
	"deskbell/backend/secrets"
	"deskbell/backend/signing"
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
	f.as.add(c, "collect")
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
		done, err := client.OpenDone(filepath.Join(ag.cfg.Data, "inbox", url.PathEscape(ag.id)))
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
		a.say("Nothing is in the mailbox of %s.", ag.id)
	}
	if r.failed {
		err = &exit{code: exitFailure}
	}
	return err
}

// keys returns the keys that entries for this agent may be signed with, as they are whenever they are asked for: a
// rotation replaces them.
func (ag *agent) keys(f *inboxFlags) (func() ([]signing.Key, error), error) {
	var fixed []signing.Key
	if f.ed25519 != "" {
		k, err := publicKey(f.ed25519)
		if err != nil {
			return nil, usagef("--ed25519: %w", err)
		}
		fixed = append(fixed, k)
	}
	for _, secret := range strings.Fields(ag.a.getenv("DESKBELL_SIGNING_SECRET")) {
		fixed = append(fixed, signing.HMACKey([]byte(secret)))
	}
	if f.secretFile != "" {
		read := func() ([]signing.Key, error) {
			raw, err := os.ReadFile(f.secretFile)
			if err != nil {
				return nil, err
			}
			k, err := keysIn(raw)
			return append(k, fixed...), err
		}
		if _, err := read(); err != nil {
			return nil, usagef("--secret-file: %w", err)
		}
		return read, nil
	}
	if len(fixed) > 0 {
		return func() ([]signing.Key, error) { return fixed, nil }, nil
	}
	read := func() (list []signing.Key, err error) {
		if ag.own {
			c, err := ag.load()
			if err != nil {
				return nil, err
			}
			if list, err = c.keys(); err != nil {
				return nil, err
			}
		}
		// Whoever may read the data folder has the secrets of any agent, as they are since its last rotation.
		kept, err := agentKeys(ag.cfg.Data, ag.id)
		if errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return append(list, kept...), err
	}
	if list, err := read(); !ag.own && len(list) == 0 {
		return nil, errors.Join(usagef("entries for %s cannot be verified without its signing secret: --secret-file FILE or DESKBELL_SIGNING_SECRET", ag.id), err)
	}
	return read, nil
}

// agentKeys are what the hub on this data folder signs to an agent with: two while one takes the place of the other.
func agentKeys(data, id string) (list []signing.Key, err error) {
	kept, err := secrets.Open(data)
	if err != nil {
		return nil, err
	}
	prefix := "agent:" + id + ":"
	for _, name := range kept.Names(prefix) {
		if secret, ok := kept.Get(prefix + name); ok && !strings.Contains(name, ":") { // else it is of an agent id:MORE
			list = append(list, signing.HMACKey([]byte(secret)))
		}
	}
	return list, nil
}

// keysIn reads a file of secrets, one a line, or of an agent's credentials.
func keysIn(raw []byte) (list []signing.Key, err error) {
	var c credentials
	if json.Unmarshal(raw, &c) == nil {
		list, err = c.keys()
	} else {
		for _, secret := range strings.Fields(string(raw)) {
			list = append(list, signing.HMACKey([]byte(secret)))
		}
	}
	if err == nil && len(list) == 0 {
		err = errors.New("there is no secret in it")
	}
	return list, err
}

// keys are what is signed to the owner of these credentials with, whichever way it was enrolled for.
func (c credentials) keys() (list []signing.Key, err error) {
	if c.SigningSecret != "" {
		list = append(list, signing.HMACKey([]byte(c.SigningSecret)))
	}
	if c.PublicKey != "" {
		k, err := publicKey(c.PublicKey)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

func publicKey(s string) (signing.Key, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(s))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return signing.Key{}, errors.New("not the base64 of a 32-byte key")
	}
	return signing.Ed25519Verifier(raw), nil
}
