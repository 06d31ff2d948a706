package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// grantCommands are the commands about credentials that agents of the network were granted.
func (a *app) grantCommands() (grants, revoke *cobra.Command) {
	grants = &cobra.Command{
		Use:     "grants",
		Short:   "List the credentials that agents may fetch at present",
		Long:    "Lists what you have granted to agents that asked for a credential, and until when. The setting map.credentials says\nwhat they may ask for.",
		Example: "  deskbell secret grants\n  deskbell settings set map.credentials '[\"github:repo:write=GITHUB_TOKEN\"]'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				var raw json.RawMessage
				if err := h.Call(cmd.Context(), http.MethodGet, "/api/grants", nil, &raw); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(raw)
				}
				return a.printGrants(raw)
			})
		},
	}
	revoke = &cobra.Command{
		Use:     "revoke GRANT",
		Short:   "End a grant: its agent must ask again",
		Long:    "Ends a grant, by its id in `deskbell secret grants`. What the agent has read already it can keep: to take that back,\nhave whoever gave you the secret make it invalid.",
		Example: "  deskbell secret revoke grant-01JZ9W3C4Q8Y7Q5E1M2N3P4R5S",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				if err := h.Call(cmd.Context(), http.MethodDelete, "/api/grants/"+url.PathEscape(args[0]), nil, nil); err != nil {
					return err
				}
				return a.done(map[string]any{"id": args[0], "revoked": true}, "Revoked %s.", args[0])
			})
		},
	}
	return grants, revoke
}

func (a *app) printGrants(raw []byte) error {
	var doc struct {
		Grants []struct {
			ID        string     `json:"id"`
			Agent     string     `json:"agent_id"`
			Scope     string     `json:"scope"`
			Resource  []textSpan `json:"resource"`
			Secret    string     `json:"secret"`
			Once      bool       `json:"once"`
			ExpiresAt int64      `json:"expires_at"`
		} `json:"grants"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return err
	}
	if len(doc.Grants) == 0 {
		a.say("No agent holds a grant.")
		return nil
	}
	rows := [][]string{{"GRANT", "AGENT", "SCOPE", "RESOURCE", "SECRET", "HOLDS"}}
	for _, g := range doc.Grants {
		until := "until " + stamp(time.UnixMilli(g.ExpiresAt))
		if g.Once {
			until = "once, " + until
		}
		rows = append(rows, []string{line(g.ID), line(g.Agent), line(g.Scope), line(textOfSpans(g.Resource)), line(g.Secret), until})
	}
	table(a.out, rows)
	return nil
}
