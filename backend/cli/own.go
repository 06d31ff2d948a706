package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/config"
	"deskbell/backend/secrets"
)

// Who acts where no agent is named.
const (
	asOwn      = "the command line's own agent"
	asOperator = "the operator"
)

// agentFlags say as which agent a command acts.
type agentFlags struct{ id, token string }

// add gives c the flags that say so; otherwise is who acts without them.
func (f *agentFlags) add(c *cobra.Command, what, otherwise string) {
	c.Flags().StringVar(&f.id, "agent", "", what+" as the agent of this `ID` (or DESKBELL_AGENT); needs its token (default: "+otherwise+")")
	c.Flags().StringVar(&f.token, "token", "", "the agent's `TOKEN`; other users can see a command line, so DESKBELL_TOKEN is better")
}

// agent is an agent that this command acts as, on whatever hub is found.
type agent struct {
	*client.Client
	a   *app
	cfg config.Config
	id  string
	own bool // the command line's own, enrolled when need be

	mu    sync.Mutex
	token string
}

// actsAs is the agent that the flags or the environment name. A command that else acts as the operator asks it first: what
// an agent's own environment runs is never the person's act.
func (a *app) actsAs(f agentFlags) agentFlags {
	if f.id == "" {
		f.id = a.getenv("DESKBELL_AGENT")
	}
	if f.id != "" && f.token == "" {
		f.token = a.getenv("DESKBELL_TOKEN")
	}
	return f
}

// agent returns the agent that the flags or the environment name, or the command line's own. The own one may not be
// enrolled yet: its token is then empty.
func (a *app) agent(f agentFlags) (*agent, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	if f = a.actsAs(f); f.token == "" {
		f.token = a.getenv("DESKBELL_TOKEN")
	}
	ag := &agent{Client: a.client(cfg, "", ""), a: a, cfg: cfg, id: f.id, token: f.token}
	ag.Where = ag.where
	if f.id == "" && f.token != "" {
		return nil, usagef("a token is given without the id of its agent: add --agent ID or DESKBELL_AGENT")
	}
	if f.token == "" {
		ag.own, ag.id = true, "cli/"+ownName()
		c, err := ag.load()
		if err != nil {
			return nil, err
		}
		if c.AgentID != "" {
			ag.id, ag.token = c.AgentID, c.Token
		}
		if f.id != "" && f.id != ag.id {
			return nil, usagef("acting as %s needs its token: --token, or better DESKBELL_TOKEN", f.id)
		}
	}
	ag.Agent = ag.id
	return ag, nil
}

// ownName is the user's name in the letters an agent id may have.
func ownName() string {
	name := "user"
	if u, err := user.Current(); err == nil {
		name = u.Username[strings.LastIndex(u.Username, `\`)+1:] // DOMAIN\name on Windows
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '#' || r == '/' || r > '~' {
			return '-'
		}
		return r
	}, name)
}

func (ag *agent) file() string { return filepath.Join(ag.cfg.Data, backend.OwnAgentFile) }

// load reads the own agent's credentials; none are no error.
func (ag *agent) load() (credentials, error) {
	var c credentials
	raw, err := os.ReadFile(ag.file())
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("the command line's own agent: %w (or act as another with --agent and DESKBELL_TOKEN)", err)
	}
	if err := os.Chmod(ag.file(), 0o600); err != nil { // a copy from elsewhere may have let others read it
		ag.a.say("%s: %s", ag.file(), err)
	}
	if json.Unmarshal(raw, &c) != nil || c.Token == "" {
		return credentials{}, nil // damaged: enrolled anew
	}
	return c, nil
}

// where finds the hub as it runs now. The own agent is enrolled first, and again when its token is not taken any more.
// Errors: *noHub, client.ErrUnreachable, *client.Error.
func (ag *agent) where(ctx context.Context, refused string) (base, token string, err error) {
	if base, err = ag.a.find(ag.cfg); err != nil {
		return "", "", err
	}
	ag.mu.Lock()
	defer ag.mu.Unlock()
	if !ag.own && refused != "" {
		return "", "", fmt.Errorf("the hub at %s does not take this token: it is wrong, rotated or revoked", base)
	}
	if ag.own && (ag.token == "" || ag.token == refused) {
		err = ag.enrol(ctx, base, refused)
	}
	return base, ag.token, err
}

// enrol gets the own agent credentials from the hub, as the operator, and keeps them. Of several commands that need
// them at once the first one gets them for all; stale is the token that did not work.
func (ag *agent) enrol(ctx context.Context, base, stale string) (err error) {
	lock := flock.New(ag.file()+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no data folder %s to keep the command line's own agent in: name one with --data, or an agent with --agent and its token (`deskbell pair ID` gets one)", ag.cfg.Data)
		}
		return fmt.Errorf("the command line's own agent: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	c, err := ag.load()
	if err != nil {
		return err
	}
	if c.Token != "" && c.Token != stale {
		ag.id, ag.token = c.AgentID, c.Token
		return nil
	}
	token, err := operatorToken(ag.cfg.Data)
	if err != nil {
		return fmt.Errorf("%w; or act as another agent with --agent and DESKBELL_TOKEN", err)
	}
	op := ag.a.dial(ag.cfg, base, token)
	err = op.Call(ctx, http.MethodPost, "/v1/agents", map[string]string{"agent_id": ag.id}, &c)
	if _, exists := client.Refused(err, "agent_exists"); exists { // its credentials were lost, or rotated elsewhere
		err = op.Call(ctx, http.MethodPost, "/api/agents/"+url.PathEscape(ag.id)+"/rotate", nil, &c)
	}
	if e, ok := client.Refused(err, "unauthenticated"); ok {
		return fmt.Errorf("the hub at %s does not take this data folder's operator token: it runs on another folder (--data DIR): %w", base, e)
	}
	if err != nil {
		return fmt.Errorf("enrolling %s: %w", ag.id, err)
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := secrets.WriteFile(ag.file(), append(raw, '\n')); err != nil {
		return fmt.Errorf("credentials of %s: %w", ag.id, err)
	}
	ag.token = c.Token
	ag.a.say("Enrolled %s; its credentials are in %s.", c.AgentID, ag.file())
	return nil
}
