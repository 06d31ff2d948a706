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

	"deskbell/backend/client"
)

// credentials are what an agent is given, once.
type credentials struct {
	AgentID       string `json:"agent_id"`
	Token         string `json:"token"`
	SigningSecret string `json:"signing_secret"`
	PublicKey     string `json:"ed25519_public_key"`
}

// addrFlag lets a command name the hub.
func (a *app) addrFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.flags.Addr, "addr", "", "the hub's `HOST:PORT` or URL (or DESKBELL_ADDR; default: the hub that runs on the data folder)")
}

func (a *app) agentCommand() *cobra.Command {
	var alg string
	add := &cobra.Command{
		Use:   "add ID",
		Short: "Enrol an agent and print its credentials, once",
		Long: "Enrols an agent and prints its credentials. They are shown this once: the hub keeps a hash of the token.\n" +
			"An id that was revoked can be enrolled again.",
		Example: "  deskbell agent add deploybot/dev-team\n  deskbell agent add deploybot --json > deploybot.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.mayCreate = true
			return a.asOperator(cmd.Context(), func(h *hub) error {
				var c credentials
				body := map[string]string{"agent_id": args[0]}
				if alg != "" {
					body["signature_alg"] = alg
				}
				if err := h.Call(cmd.Context(), http.MethodPost, "/v1/agents", body, &c); err != nil {
					if e, exists := client.Refused(err, "agent_exists"); exists {
						e.Message += fmt.Sprintf(" (`deskbell agent rotate %s` gives it new credentials)", args[0])
					}
					return err
				}
				return a.printCredentials(c, "Enrolled")
			})
		},
	}
	add.Flags().StringVar(&alg, "alg", "", "how what is pushed to it is signed: `ALG` is hmac-sha256 (default) or ed25519")
	list := &cobra.Command{
		Use:     "list",
		Short:   "List the agents",
		Example: "  deskbell agent list\n  deskbell agent list --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listAgents(cmd.Context()) },
	}
	rotate := &cobra.Command{
		Use:               "rotate ID",
		Short:             "Give an agent new credentials; the old token works for ten more minutes",
		Example:           "  deskbell agent rotate deploybot --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				var c credentials
				if err := h.Call(cmd.Context(), http.MethodPost, "/api/agents/"+url.PathEscape(args[0])+"/rotate", nil, &c); err != nil {
					return fmtID(args[0], err)
				}
				return a.printCredentials(c, "Rotated")
			})
		},
	}
	revoke := &cobra.Command{
		Use:   "revoke ID",
		Short: "End an agent's credentials at once",
		Long: "Ends all of an agent's credentials at once, and its sessions, with what waits for them as `deskbell agent stop` does.\n" +
			"What it asked stays where it is; it can be enrolled again.",
		Example:           "  deskbell agent revoke deploybot",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				if args[0] == "" {
					return usagef("the ID is empty")
				}
				if err := h.Call(cmd.Context(), http.MethodDelete, "/v1/agents/"+url.PathEscape(args[0]), nil, nil); err != nil {
					return fmtID(args[0], err)
				}
				return a.done(map[string]any{"agent_id": args[0], "revoked": true}, "Revoked %s.", args[0])
			})
		},
	}
	for _, c := range []*cobra.Command{add, list, rotate, revoke} {
		a.addrFlag(c)
	}
	return group("agent", "Agents: enrol, list, rotate, revoke, stop", "  deskbell agent add deploybot\n  deskbell agent list",
		add, list, a.sessionsCommand(), a.stopCommand(), a.resumeCommand(), rotate, revoke)
}

// done says that something was done, to a person or as JSON.
func (a *app) done(doc any, format string, args ...any) error {
	if a.json {
		return a.printJSON(doc)
	}
	a.tell(format, args...)
	return nil
}

func (a *app) printCredentials(c credentials, what string) error {
	if a.json {
		return a.printJSON(c)
	}
	pairs(a.out, "agent_id", line(c.AgentID), "token", line(c.Token), "signing_secret", line(c.SigningSecret), "ed25519_public_key", line(c.PublicKey))
	a.say("%s %s. The token is shown this once: keep it where the agent finds it, such as DESKBELL_TOKEN.", what, c.AgentID)
	return nil
}

type agentRow struct {
	AgentID   string   `json:"agent_id"`
	Protocol  string   `json:"protocol"`
	RevokedAt int64    `json:"revoked_at"`
	OpenItems int      `json:"open_items"`
	Awaiting  []string `json:"hosts_awaiting_approval"`
}

func (a *app) listAgents(ctx context.Context) error {
	return a.asOperator(ctx, func(h *hub) error {
		if a.json {
			var doc json.RawMessage
			if err := h.Call(ctx, http.MethodGet, "/v1/agents", nil, &doc); err != nil {
				return err
			}
			return a.printJSON(doc)
		}
		agents, err := fleetOf(ctx, h)
		if err != nil {
			return err
		}
		if len(agents) == 0 {
			a.say("No agents yet: `deskbell agent add ID` enrols one.")
			return nil
		}
		now := time.Now()
		rows := [][]string{{"AGENT", "PROTOCOL", "ACTIVE", "OPEN", "MAILBOX", "NOTE"}}
		for _, r := range agents {
			rows = append(rows, []string{line(r.AgentID), line(r.Protocol), r.Presence.text(now), itoa(r.OpenItems), itoa(r.waiting()), r.note(now)})
		}
		table(a.out, rows)
		return nil
	})
}

// waiting is how much is in the agent's mailbox and was not acknowledged.
func (ag fleetAgent) waiting() int {
	n := ag.Waiting
	for _, s := range ag.Sessions {
		n += s.Waiting
	}
	return n
}

func (ag fleetAgent) note(now time.Time) string {
	var notes []string
	if ag.RevokedAt != 0 {
		notes = append(notes, "revoked "+ago(fromMs(ag.RevokedAt), now))
	}
	if ag.EndedAt != 0 {
		notes = append(notes, "ended "+ago(fromMs(ag.EndedAt), now))
	}
	if ag.Stopped != nil {
		notes = append(notes, "stopped "+ago(fromMs(ag.Stopped.At), now))
	}
	if len(ag.Awaiting) > 0 {
		notes = append(notes, "callback host awaits approval: "+line(strings.Join(ag.Awaiting, " ")))
	}
	return strings.Join(notes, "; ")
}
