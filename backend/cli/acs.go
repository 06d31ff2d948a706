package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/config"
)

// acsFlags say where the things are that Claude Code's hooks need.
type acsFlags struct {
	adapter  string
	settings string
	project  bool
	write    bool
	remove   bool
}

func (a *app) acsCommand() *cobra.Command {
	var f acsFlags
	claude := &cobra.Command{
		Use:   "claude-code",
		Short: "The hooks of Claude Code",
		Long: "Prints the hooks for Claude Code's settings file: every event runs the public ACS adapter, with time-outs of its own.\n" +
			"Before a tool runs, and before a prompt is taken, Claude Code then does nothing without an answer: the hub's, or a no.\n" +
			"With --write they are merged into the settings file; a copy of the file as it was stays beside it. With --remove\n" +
			"the hooks of an ACS adapter are taken out again. The adapter is acs_adapter.py in adapters/claude-code of the public\n" +
			"repository GenAI-Security-Project/agent-control-standard; it needs Python 3.10 and the package rfc8785.",
		Example: "  deskbell acs setup claude-code --adapter ~/acs/adapters/claude-code/acs_adapter.py\n" +
			"  deskbell acs setup claude-code --adapter ~/acs/adapters/claude-code/acs_adapter.py --project --write\n" +
			"  deskbell acs setup claude-code --remove --write",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.acsSetup(cmd.Context(), f) },
	}
	claude.Flags().BoolVar(&f.write, "write", false, "write the settings file instead of printing the hooks")
	claude.Flags().BoolVar(&f.remove, "remove", false, "take the hooks out")
	doctor := &cobra.Command{
		Use:   "doctor",
		Short: "Prove that a hook fires and is answered, or say what is missing",
		Long: "Looks at the shared key, the running hub, Python and the adapter, and the hooks in Claude Code's settings. Then it does\n" +
			"what a program's hook does: it pings the hub, agrees on terms and sends a step, under the real key, over HTTP. With\n" +
			"hooks wired it also runs the very command that they run, and looks for its session at the hub.\n" +
			"Exit codes: 0 nothing is broken, 1 something is.",
		Example: "  deskbell acs doctor\n  deskbell acs doctor --project --json | jq '.checks[] | select(.level != \"ok\")'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.acsDoctor(cmd.Context(), f) },
	}
	for _, with := range []*cobra.Command{claude, doctor} {
		with.Flags().StringVar(&f.adapter, "adapter", "", "where acs_adapter.py is, `PATH`")
		with.Flags().StringVar(&f.settings, "settings", "", "the settings file `PATH` (default: .claude/settings.json in your home)")
		with.Flags().BoolVar(&f.project, "project", false, "the settings of the project in this folder, .claude/settings.json")
		a.addrFlag(with)
	}
	const example = "  deskbell acs setup claude-code --adapter ~/acs/adapters/claude-code/acs_adapter.py --write"
	setup := group("setup", "Print, or write, the hooks that make a program ask this hub", example, claude)
	return group("acs", "Agents that ask leave through ACS: setup, doctor", example+"\n  deskbell acs doctor", setup, doctor)
}

// where is the flags that name the settings file again, to go on a command line; empty where none did.
func (f acsFlags) where() string {
	switch {
	case f.project:
		return " --project"
	case f.settings != "":
		return " --settings " + shellWord(f.settings)
	}
	return ""
}

// settingsFile is the file that Claude Code reads its hooks from.
func (f acsFlags) settingsFile() (string, error) {
	switch {
	case f.settings != "" && f.project:
		return "", usagef("--settings and --project both name a settings file")
	case f.settings != "":
		return f.settings, nil
	case f.project:
		return filepath.Join(".claude", "settings.json"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("settings file: %w: name it with --settings PATH", err)
	}
	return filepath.Join(home, ".claude", "settings.json"), nil
}

// acsURL is where the adapter reaches the hub: the running one, or the one that would run.
func (a *app) acsURL(ctx context.Context, cfg config.Config) (url string, running bool, err error) {
	h, err := a.online(ctx, cfg)
	if err != nil {
		return "", false, err
	}
	if h != nil {
		return h.URL + "/acs", true, nil
	}
	addr := cfg.Addr
	if a.flags.Addr != "" {
		addr = a.flags.Addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", false, err
	}
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/acs", false, nil
}

func acsKeyFile(cfg config.Config) string { return filepath.Join(cfg.Data, backend.ACSKeyFile) }
