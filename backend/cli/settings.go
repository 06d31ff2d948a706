package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"deskbell/backend/client"
	"deskbell/backend/loopback"
	"deskbell/backend/settings"
)

func itoa(n int) string { return strconv.Itoa(n) }

func (a *app) settingsCommand() *cobra.Command {
	get := &cobra.Command{
		Use:               "get [KEY]",
		Short:             "Print all settings, or one",
		Example:           "  deskbell settings get\n  deskbell settings get retention_days",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeSettings,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				var raw json.RawMessage
				if err := h.Call(cmd.Context(), http.MethodGet, "/v1/settings", nil, &raw); err != nil {
					return err
				}
				return a.printSettings(raw, args)
			})
		},
	}
	set := &cobra.Command{
		Use:               "set KEY VALUE",
		Short:             "Change a setting, at once",
		Long:              "Changes a setting. VALUE is JSON (30, true, \"text\"); what is not JSON is taken as a string. It takes effect at once.",
		Example:           "  deskbell settings set retention_days 90\n  deskbell settings set operator.id alice",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeSettings,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.mayCreate = true
			return a.asOperator(cmd.Context(), func(h *hub) error {
				value := json.RawMessage(args[1])
				if !json.Valid(value) {
					value, _ = client.Bytes(args[1]) // a string always can be
				}
				var raw json.RawMessage
				err := h.Call(cmd.Context(), http.MethodPatch, "/v1/settings", map[string]json.RawMessage{args[0]: value}, &raw)
				if e, ok := client.Refused(err, "invalid_field"); ok && value[0] != '"' && strings.Contains(e.Message, "must be a name") {
					// operator.id may read like a number or a word of JSON.
					value, _ = client.Bytes(args[1])
					err = h.Call(cmd.Context(), http.MethodPatch, "/v1/settings", map[string]json.RawMessage{args[0]: value}, &raw)
				}
				if err != nil {
					return err
				}
				a.missingFolders(h, args[0], value)
				return a.printSettings(raw, args[:1])
			})
		},
	}
	a.addrFlag(get)
	a.addrFlag(set)
	return group("settings", "The hub's settings: get, set", "  deskbell settings get\n  deskbell settings set retention_days 90", get, set)
}

// missingFolders warns of folders that were granted to agents and do not exist: they may be made later.
func (a *app) missingFolders(h *hub, key string, value json.RawMessage) {
	var entries []string
	if key != settings.MAPWorkspaces || json.Unmarshal(value, &entries) != nil {
		return
	}
	if u, err := url.Parse(h.URL); !h.offline && (err != nil || !loopback.Host(u.Hostname())) {
		return // the folders are another machine's
	}
	for _, e := range entries {
		if _, dir, ok := strings.Cut(e, "="); ok {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				a.say("%s: there is no such folder at present", dir)
			}
		}
	}
}

func (a *app) printSettings(raw json.RawMessage, keys []string) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	if len(keys) == 0 {
		if a.json {
			return a.printJSON(raw)
		}
		var rows [][]string
		for _, k := range slices.Sorted(maps.Keys(all)) {
			rows = append(rows, []string{line(k), line(bare(all[k]))})
		}
		table(a.out, rows)
		return nil
	}
	v, ok := all[keys[0]]
	if !ok {
		return usagef("there is no setting %q; `deskbell settings get` lists them", keys[0])
	}
	if a.json {
		return a.printJSON(v)
	}
	a.tell("%s", bare(v))
	return nil
}

// bare is a JSON value as a person reads it: strings without quotes.
func bare(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(readable(raw))
}

func (a *app) secretCommand() *cobra.Command {
	var agents []string
	set := &cobra.Command{
		Use:   "set NAME",
		Short: "Set a secret, read from standard input",
		Long: "Reads one line from standard input (from a terminal: without showing it) and keeps it as a secret that a callback\n" +
			"may name as \"secret:NAME\", and that agents may ask you for where the setting map.credentials names it.\n" +
			"It can be replaced and removed, never read back. With --agent only those agents and their callbacks\n" +
			"may name it; without, a new one is any agent's (it goes only to hosts you approved for that agent), and one that is\n" +
			"replaced stays with the agents it has.",
		Example: "  printf %s \"$HOOK_SECRET\" | deskbell secret set hook\n  deskbell secret set hook --agent deploybot < hook.txt",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := a.readSecret(args[0])
			if err != nil {
				return err
			}
			a.mayCreate = true
			return a.asOperator(cmd.Context(), func(h *hub) error {
				err := h.Call(cmd.Context(), http.MethodPut, "/api/secrets/"+url.PathEscape(args[0]), map[string]any{"value": value, "agents": agents}, nil)
				if err != nil {
					return err
				}
				return a.done(map[string]any{"name": args[0], "set": true}, `Set. Callbacks name it "secret:%s".`, args[0])
			})
		},
	}
	set.Flags().StringArrayVar(&agents, "agent", nil, "keep it for the agent of this `ID`; may be repeated")
	list := &cobra.Command{
		Use:     "list",
		Short:   "List the names of the secrets",
		Example: "  deskbell secret list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				var raw json.RawMessage
				if err := h.Call(cmd.Context(), http.MethodGet, "/api/secrets", nil, &raw); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(raw)
				}
				var doc struct {
					Names []string `json:"names"`
				}
				if err := json.Unmarshal(raw, &doc); err != nil {
					return err
				}
				for _, n := range doc.Names {
					a.tell("%s", n)
				}
				if len(doc.Names) == 0 {
					a.say("No secrets yet: `deskbell secret set NAME` sets one.")
				}
				return nil
			})
		},
	}
	rm := &cobra.Command{
		Use:     "rm NAME",
		Short:   "Remove a secret",
		Example: "  deskbell secret rm hook",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				if err := h.Call(cmd.Context(), http.MethodDelete, "/api/secrets/"+url.PathEscape(args[0]), nil, nil); err != nil {
					return err
				}
				return a.done(map[string]any{"name": args[0], "removed": true}, "Removed %s.", args[0])
			})
		},
	}
	grants, revoke := a.grantCommands()
	for _, c := range []*cobra.Command{set, list, rm, grants, revoke} {
		a.addrFlag(c)
	}
	return group("secret", "Named secrets, and who was granted them: set, list, rm, grants, revoke", "  deskbell secret set hook < hook.txt\n  deskbell secret list", set, list, rm, grants, revoke)
}

// readSecret reads a secret's one line from stdin; a terminal does not show it.
func (a *app) readSecret(name string) (string, error) {
	var raw []byte
	var err error
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		io.WriteString(a.err, "Value of "+line(name)+" (not shown): ")
		raw, err = term.ReadPassword(int(f.Fd()))
		io.WriteString(a.err, "\n")
	} else {
		raw, err = io.ReadAll(io.LimitReader(a.in, 64<<10))
	}
	if err != nil {
		return "", err
	}
	value := bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	if len(value) == 0 {
		return "", &exit{code: exitUsage, err: errors.New("no value came on standard input")}
	}
	return string(value), nil
}
