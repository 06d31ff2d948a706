package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a script that completes commands in bash, zsh, fish or powershell",
		Example:   "  mkdir -p ~/.local/share/bash-completion/completions\n  deskbell completion bash > ~/.local/share/bash-completion/completions/deskbell\n  deskbell completion fish | source",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(out)
			}
		},
	}
}

// suggest asks the running hub, briefly. No hub, no suggestions: pressing Tab opens nothing.
func (a *app) suggest(path string, pick func(json.RawMessage) []string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	cfg, err := a.config()
	if err != nil {
		return nil
	}
	h, err := a.online(ctx, cfg)
	if h == nil || err != nil {
		return nil
	}
	var raw json.RawMessage
	if h.Call(ctx, http.MethodGet, path, nil, &raw) != nil {
		return nil
	}
	return pick(raw)
}

func (a *app) completeAgents(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.suggest("/v1/agents", func(raw json.RawMessage) (ids []string) {
		var doc struct {
			Agents []agentRow `json:"agents"`
		}
		_ = json.Unmarshal(raw, &doc) // nothing to suggest then
		for _, r := range doc.Agents {
			if r.RevokedAt == 0 {
				ids = append(ids, line(r.AgentID))
			}
		}
		return ids
	}), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeOpen(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.suggest("/v1/messages?status=open&limit=50", func(raw json.RawMessage) (ids []string) {
		var doc struct {
			Messages []message `json:"messages"`
		}
		_ = json.Unmarshal(raw, &doc) // nothing to suggest then
		for _, m := range doc.Messages {
			ids = append(ids, m.ID+"\t"+line(m.Title))
		}
		return ids
	}), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeSettings(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.suggest("/v1/settings", func(raw json.RawMessage) (keys []string) {
		var doc map[string]json.RawMessage
		_ = json.Unmarshal(raw, &doc) // nothing to suggest then
		for k := range doc {
			keys = append(keys, k)
		}
		return keys
	}), cobra.ShellCompDirectiveNoFileComp
}
