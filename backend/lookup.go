package backend

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/user"
	"slices"
	"strings"

	"deskbell/backend/config"
	"deskbell/backend/desk"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/settings"
	"deskbell/backend/signing"
	"deskbell/schemas"
)

// What the parts ask of each other, through the hub.

func (h *Hub) policy(ctx context.Context, agent string) (inbox.Policy, error) {
	a, err := h.fleet.Store.Agent(ctx, agent)
	if errors.Is(err, fleet.ErrUnknownAgent) {
		return inbox.Policy{}, nil
	}
	return a.Policy.Inbox(), err
}

// command is the words that begin any command to a hub of that configuration in a terminal.
func command(cfg config.Config) []string {
	words := []string{"deskbell"}
	if self, err := os.Executable(); err == nil {
		words[0] = self
	}
	if cfg.DataGiven {
		words = append(words, "--data", cfg.Data)
	}
	return words
}

// agentChanged follows a change of an agent: who its messages are for, and what the page shows.
func (h *Hub) agentChanged(agent string, reclassify bool) {
	if reclassify {
		if err := h.inbox.Reclassify(context.Background(), agent); err != nil {
			h.log.Error("who messages are for", "agent", agent, "err", err)
		}
	}
	h.desk.Touch(desk.TopicAgents)
}

// secret finds what a callback's reference names: env:NAME of the listed variables, secret:NAME unless the operator
// keeps it for other agents, agent:signing.
func (h *Hub) secret(ctx context.Context, agent, ref string) (string, bool) {
	scheme, name, _ := strings.Cut(ref, ":")
	switch scheme {
	case "env":
		for _, allowed := range h.cfg.EnvAllow {
			if allowed == name {
				v := os.Getenv(name)
				return v, v != ""
			}
		}
	case "secret":
		if agents := desk.SecretAgents(h.secrets, name); agents != nil && !slices.Contains(agents, agent) {
			return "", false
		}
		return h.secrets.Get(desk.SecretPrefix + name)
	case "agent":
		if name == "signing" {
			v, err := h.fleet.SigningSecret(ctx, agent)
			return v, err == nil
		}
	}
	return "", false
}

// agentKey signs what is pushed to an agent.
func (h *Hub) agentKey(ctx context.Context, agent string) (signing.Key, error) {
	a, err := h.fleet.Store.Agent(ctx, agent)
	if err != nil {
		return signing.Key{}, err
	}
	if a.Alg == signing.AlgEd25519 {
		return signing.Ed25519Key(h.signer), nil
	}
	secret, err := h.fleet.SigningSecret(ctx, agent)
	if err != nil {
		return signing.Key{}, err
	}
	return signing.HMACKey([]byte(secret)), nil
}

func checkInput(schema, value json.RawMessage) []inbox.FieldError {
	answer, err := schemas.CompileAnswer(schema)
	if err != nil {
		return []inbox.FieldError{{Pointer: "/value", Message: "the question's own schema cannot be used: " + err.Error()}}
	}
	if len(value) == 0 || value[0] != '{' {
		return []inbox.FieldError{{Pointer: "/value", Message: "the answer must be an object"}}
	}
	var bad []inbox.FieldError
	for _, f := range answer.Validate(value) {
		bad = append(bad, inbox.FieldError{Pointer: "/value" + f.Pointer, Message: f.Message})
	}
	return bad
}

// userName is the operator's name until the setting says otherwise.
func userName() string {
	if u, err := user.Current(); err == nil {
		_, name, found := strings.Cut(u.Username, `\`) // DOMAIN\name on Windows
		if !found {
			name = u.Username
		}
		return name
	}
	return ""
}

// limits are what the mailbox and the sessions follow, as set at this moment.
func (h *Hub) limits() mailbox.Limits {
	v := h.settings.Get()
	return mailbox.Limits{
		Visibility: v.Seconds(settings.VisibilityTimeout), Retention: v.Retention(), Window: v.Seconds(settings.Freshness),
		MinTTL: v.Seconds(settings.MinTTL), MaxTTL: v.Seconds(settings.MaxTTL), MaxLive: v.Int(settings.MaxLive),
		TerminalRetention: v.Seconds(settings.TerminalRetention), MaxBatch: v.Int(settings.MaxBatch),
		StreamHold: v.Seconds(settings.StreamMaxHold), Depth: v.Int(settings.InboxDepth),
		InterAgent: v.Bool(settings.InterAgent), ListVisibility: v.Bool(settings.ListVisibility),
	}
}
