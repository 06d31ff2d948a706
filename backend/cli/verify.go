package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/secrets"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

type verifyFlags struct {
	signature, callbackURL, to                 string
	ref, secretEnv, secretFile, agent, ed25519 string
	at                                         string
	keys                                       []string
	noFreshness, acs                           bool
}

func (a *app) verifyCommand() *cobra.Command {
	f := &verifyFlags{}
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check what the hub signed, or the chain of a guarded session",
		Long: `Checks a signed payload: the body of a push (with --signature, the MA2H-Signature header, and for an answer with
--callback-url, exactly as the agent submitted it), or a mailbox row {"directive"|"message"|"response"|"receipt": …,
"signature": …} (for an answer or a receipt with --to, the session's address). - is standard input.

With --acs it checks a guarded session as the Guardian view exports it (JSON Lines): it recomputes the hash of every
request and every link of the chain, that each answer is that of its step, and that it says what the file says of the decision:
who, why, and with what changed. It says that all of them hold, or which one does not. Nothing covers the hub's own times, and
of a session that has not ended the last steps may be missing. Without a key that shows that the file is consistent in itself, not who wrote it: anybody can write such a file.
With --key and the hub's acs/hmac.key it checks the signature of every request and answer too: whoever wrote them has that
key, the hub or the agent's host. A session that went on with a new secret needs the old one too: --key once for each.

Otherwise it prints what the signature binds, then OK, or why not. One key is needed: --secret with env:NAME (the environment),
file:PATH, secret:NAME or agent:ID (both from the data folder), its short forms, or --ed25519 with the hub's public key.

Exit codes: 0 the signature or the chain holds, 1 it does not, 2 bad usage.`,
		Example: "  deskbell verify push.json --signature \"$HEADER\" --callback-url https://bot.example/hook --secret-env HOOK_SECRET\n" +
			"  deskbell verify row.json --agent-secret deploybot\n" +
			"  deskbell verify row.json --to agent:deploybot#sess_1 --ed25519 KEY --no-freshness\n" +
			"  deskbell verify --acs acs-session.jsonl --key ~/.local/share/deskbell/acs/hmac.key",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(f.keys) > 0 && !f.acs {
				return usagef("--key belongs to --acs; for a signed payload it is --secret")
			}
			if f.acs {
				return a.verifyChain(args[0], f.keys)
			}
			return a.verify(args[0], f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.signature, "signature", "", "the signature `HEADER`, with or without its name (a row carries its own)")
	fl.StringVar(&f.callbackURL, "callback-url", "", "the callback `URL` of a pushed answer, as it was submitted")
	fl.StringVar(&f.to, "to", "", "the `ADDRESS` of the session that collected an answer or a receipt (agent:ID#SESSION)")
	fl.StringVar(&f.ref, "secret", "", "where the shared secret is: `REF` is env:NAME, file:PATH, secret:NAME or agent:ID")
	fl.StringVar(&f.secretEnv, "secret-env", "", "short for --secret env:`NAME`")
	fl.StringVar(&f.secretFile, "secret-file", "", "short for --secret file:`PATH`")
	fl.StringVar(&f.agent, "agent-secret", "", "short for --secret agent:`ID`: that agent's signing secret")
	fl.StringVar(&f.ed25519, "ed25519", "", "the hub's public `KEY`, base64 (its capability document has it)")
	fl.StringVar(&f.at, "at", "", "check as of this `TIME` (RFC 3339 or Unix seconds) instead of now")
	fl.BoolVar(&f.noFreshness, "no-freshness", false, "do not mind how old the signature is")
	fl.BoolVar(&f.acs, "acs", false, "check the chain of a guarded session's export")
	fl.StringArrayVar(&f.keys, "key", nil, "with --acs: the `FILE` of a secret shared with agents' hosts, once for each; their signatures are checked too")
	for _, other := range []string{"signature", "callback-url", "to", "secret", "secret-env", "secret-file", "agent-secret", "ed25519", "at", "no-freshness"} {
		c.MarkFlagsMutuallyExclusive("acs", other)
	}
	c.MarkFlagsMutuallyExclusive("secret", "secret-env", "secret-file", "agent-secret", "ed25519")
	c.MarkFlagsMutuallyExclusive("at", "no-freshness")
	return c
}

func (a *app) verify(file string, f *verifyFlags) error {
	raw, err := a.readFile(file)
	if err != nil {
		return err
	}
	keys, err := a.verifyKeys(f)
	if err != nil {
		return err
	}
	if err := wire.Check(raw, 0); err != nil {
		return fmt.Errorf("%s is not what was signed: %w", file, err)
	}
	kind, c, err := f.context(raw)
	if err != nil {
		return err
	}
	if f.signature == "" {
		return usagef("there is no signature in %s: give the header with --signature", file)
	}
	now, err := f.now()
	if err != nil {
		return err
	}
	header, err := signing.ParseHeader(f.signature)
	if err != nil {
		return a.verdict(kind, keys[0], nil, header, err, now)
	}
	if f.noFreshness {
		now = time.Unix(header.T, 0)
	}
	bound, err := c.Bytes(header.T, header.JTI)
	if err != nil {
		return a.verdict(kind, keys[0], nil, header, err, now)
	}
	for _, key := range keys {
		if err = c.Verify(key, f.signature, now); err == nil {
			return a.verdict(kind, key, bound, header, nil, now)
		}
	}
	return a.verdict(kind, keys[0], bound, header, err, now)
}

// context is what the document's signature should bind. It takes the signature of a row that carries one.
func (f *verifyFlags) context(raw []byte) (kind string, c signing.Signed, err error) {
	entry := raw
	if r, ok := row(raw); ok {
		kind, entry = r.Kind, r.Object
		if f.signature == "" {
			f.signature = r.Signature
		}
	} else {
		typ, _ := wire.Get(raw, "type")
		kind, _ = wire.String(typ)
		if _, ok := wire.Get(raw, "resolution_id"); ok && kind != "ack" {
			kind = "response"
		}
		if kind == "response" && f.to == "" {
			kind = "push"
		}
	}
	switch kind {
	case "push":
		if f.callbackURL == "" {
			return "", nil, usagef("a pushed answer is bound to its callback: give --callback-url as it was submitted (or --to for one from a mailbox)")
		}
		if _, err := url.Parse(f.callbackURL); err != nil {
			return "", nil, usagef("--callback-url: %w", err)
		}
		kind = "response push"
		c, err = signing.ResponseOf(entry, f.callbackURL)
	case "response", "receipt":
		if f.to == "" {
			return "", nil, usagef("a %s is bound to the session that collects it: give its address with --to agent:ID#SESSION", kind)
		}
		c, err = signing.EntryOf(kind, entry, f.to)
	case "ask", "task", "notify":
		kind = "message"
		c, err = signing.MessageEntryOf(entry)
	case "directive", "message":
		c, err = signing.EntryOf(kind, entry, f.to)
	case "ack":
		c, err = signing.AckOf(entry)
	default:
		return "", nil, usagef("this is neither an answer, a directive, a message, a receipt nor an acknowledgment")
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", kind, err)
	}
	return kind, c, nil
}

func (f *verifyFlags) now() (time.Time, error) {
	if f.at == "" {
		return time.Now(), nil
	}
	if n, err := strconv.ParseInt(f.at, 10, 64); err == nil {
		return time.Unix(n, 0), nil
	}
	t, err := time.Parse(time.RFC3339Nano, f.at)
	if err != nil {
		return t, usagef("--at: %q is neither an RFC 3339 time nor Unix seconds", f.at)
	}
	return t, nil
}

// verifyKeys are the keys that the flags name, at least one: of an agent, both while one takes the place of the other.
func (a *app) verifyKeys(f *verifyFlags) ([]signing.Key, error) {
	if f.ed25519 != "" {
		k, err := publicKey(f.ed25519)
		if err != nil {
			return nil, usagef("--ed25519: %w", err)
		}
		return []signing.Key{k}, nil
	}
	for short, v := range map[string]string{"env:": f.secretEnv, "file:": f.secretFile, "agent:": f.agent} {
		if v != "" {
			f.ref = short + v
		}
	}
	scheme, name, _ := strings.Cut(f.ref, ":")
	secret := ""
	switch scheme {
	case "":
		return nil, usagef("a key is needed: --secret REF, --secret-env, --secret-file, --agent-secret or --ed25519")
	case "env":
		secret = a.getenv(name)
	case "file":
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, &exit{exitUsage, err}
		}
		secret = strings.TrimRight(string(raw), "\r\n")
	case "secret", "agent":
		cfg, err := a.config()
		if err != nil {
			return nil, err
		}
		if scheme == "agent" {
			list, err := agentKeys(cfg.Data, name)
			if err == nil && len(list) == 0 {
				err = usagef("there is no secret at %s", f.ref)
			}
			return list, err
		}
		kept, err := secrets.Open(cfg.Data)
		if err != nil {
			return nil, err
		}
		secret, _ = kept.Get(f.ref) // named secrets are kept under the very names that refer to them
	default:
		return nil, usagef("--secret: %q is not env:NAME, file:PATH, secret:NAME or agent:ID", f.ref)
	}
	if secret == "" {
		return nil, usagef("there is no secret at %s", f.ref)
	}
	return []signing.Key{signing.HMACKey([]byte(secret))}, nil
}

// verdict prints what is bound and whether the signature holds.
func (a *app) verdict(kind string, key signing.Key, bound []byte, h signing.Header, err error, now time.Time) error {
	reason := ""
	switch {
	case err == nil:
	case errors.Is(err, signing.ErrStale):
		apart := now.Sub(time.Unix(h.T, 0)).Round(time.Second)
		reason = fmt.Sprintf("%s: it was made %s, and the window is %s either way", signing.ErrStale, map[bool]string{true: span(apart) + " before", false: span(-apart) + " after"}[apart > 0], signing.Window)
	case errors.Is(err, signing.ErrMismatch):
		reason = err.Error() + ": the content, what it is bound to, or the key is not what was signed"
	default:
		reason = err.Error()
	}
	if a.json {
		doc := map[string]any{"ok": err == nil, "kind": kind, "alg": key.Alg(), "bound": json.RawMessage(bound)}
		if bound == nil {
			doc["bound"] = nil
		}
		if reason != "" {
			doc["reason"] = reason
		}
		return errors.Join(a.printJSON(doc), invalidIf(err != nil))
	}
	a.tell("%s, %s", kind, key.Alg())
	var members map[string]json.RawMessage
	if json.Unmarshal(bound, &members) == nil {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			v := line(bare(members[name]))
			if name == "t" {
				v += " (" + stamp(time.Unix(h.T, 0)) + ")"
			}
			list = append(list, "  "+name, v)
		}
		pairs(a.out, list...)
	}
	if err != nil {
		a.tell("FAIL: %s", reason)
		return &exit{code: exitFailure}
	}
	a.tell("OK")
	return nil
}
