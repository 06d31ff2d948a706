// Package cli is the command line: every command of the program but the window itself, which main hands in. Commands
// talk to the hub over HTTP as anybody else would. What only the operator may do works without a running hub too: then
// the same requests go to a hub opened on the data folder in this very process, so that there is one code path.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/config"
	"deskbell/backend/inbox"
)

// The exit codes. Scripts rely on them.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitRunning     = 3 // another hub has the data folder
	exitPortTaken   = 4
	exitDeclined    = 10 // for a task: dismissed
	exitExpired     = 11
	exitCancelled   = 12
	exitStillOpen   = 13
	exitInterrupted = 130
)

// Window is what main knows of windows and this package does not.
type Window struct {
	// Check says what stands in the way of a window, before anything is opened.
	Check func() error
	// Run shows the window on a hub until either ends.
	Run func(ctx context.Context, hub *backend.Hub, o WindowOptions) error
	// HandOver asks the window that runs on the data folder to come to the front and open link.
	HandOver func(ctx context.Context, data, link string) error
	// CheckLink says what is wrong with a link to an item.
	CheckLink func(link string) error
}

// WindowOptions say how the window opens.
type WindowOptions struct {
	Data   string
	Link   string
	Hidden bool
}

// app is one run of the program.
type app struct {
	window *Window // nil in a build without one
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	json   bool
	flags  config.Flags
	// mayCreate lets a command make a data folder that is not there.
	mayCreate bool
	running   bool // the command line was understood and the command runs
}

// Main runs the command that args name and returns the exit code. window is nil in a build that has none.
func Main(args []string, window *Window) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A signal that comes well after the first ends the program at once; one that comes with it is the same wish.
	context.AfterFunc(ctx, func() { time.AfterFunc(2*time.Second, stop) })
	a := &app{window: window, in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	root := a.root()
	root.SetArgs(args)
	return a.exitCode(root.ExecuteContext(ctx))
}

// exit is an error with an exit code of its own. Without an error inside nothing is said.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usagef is a fault in how the command was called.
func usagef(format string, args ...any) error {
	return &exit{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// exitCode says what went wrong, once and for all commands, and returns the code for it.
func (a *app) exitCode(err error) int {
	if err == nil {
		return 0
	}
	code := exitFailure
	var (
		with    *exit
		other   *backend.RunningError
		refused *client.Error
	)
	switch {
	case errors.As(err, &with):
		code = with.code
		if with.err == nil {
			return code
		}
	case !a.running:
		code = exitUsage
	case errors.As(err, &other):
		code = exitRunning
	case errors.Is(err, syscall.EADDRINUSE):
		code = exitPortTaken
	case errors.Is(err, context.Canceled):
		code, err = exitInterrupted, errors.New("interrupted")
	}
	a.say("deskbell: %s", err)
	if errors.As(err, &refused) {
		for _, f := range refused.Details {
			if !strings.Contains(err.Error(), f.Message) {
				a.say("  %s", inbox.FieldError{Pointer: f.Pointer, Message: f.Message})
			}
		}
	}
	if !a.running {
		a.say(`Run "deskbell --help", or a command with --help, for how it is used.`)
	}
	return code
}

// root is the command tree.
func (a *app) root() *cobra.Command {
	root := a.windowCommand()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.AddGroup(
		&cobra.Group{ID: "hub", Title: "The hub:"},
		&cobra.Group{ID: "agents", Title: "For agents and scripts:"},
		&cobra.Group{ID: "desk", Title: "For the person:"},
		&cobra.Group{ID: "house", Title: "Housekeeping:"},
	)
	root.PersistentFlags().StringVar(&a.flags.Data, "data", "", "the data folder `DIR` (or DESKBELL_DATA; default: deskbell in the user's data folder)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON on stdout, and what is for people on stderr")
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("hub", a.serveCommand(), a.agentCommand(), a.acsCommand(), a.secretCommand(), a.settingsCommand())
	add("agents", a.askCommand(), a.taskCommand(), a.notifyCommand(), a.cancelCommand(), a.inboxCommand(), a.pairCommand(), a.validateCommand(), a.verifyCommand())
	add("desk", a.listCommand(), a.showCommand(), a.resolveCommand(), a.tellCommand(), a.piCommand())
	add("house", a.backupCommand(), a.exportCommand(), a.doctorCommand(), a.versionCommand(), completionCommand())
	a.mark(root)
	return root
}

// named makes the errors of a command about how many arguments it has say which one is missing, or which is too many.
func named(c *cobra.Command) {
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil || !strings.HasPrefix(err.Error(), "accepts ") && !strings.HasPrefix(err.Error(), "requires ") {
			return err
		}
		var names []string
		for _, word := range strings.Fields(cmd.Use)[1:] {
			if word == strings.ToUpper(word) {
				names = append(names, word)
			}
		}
		switch {
		case len(args) < len(names):
			return usagef("%s is missing: %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return usagef("%q is one argument too many (quote what has spaces): %s", args[len(names)], cmd.UseLine())
		}
		return err
	}
}

// mark notes when a command begins to run: what failed before that is the caller's to mend.
func (a *app) mark(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			a.running = true
			return run(cmd, args)
		}
	}
	named(c)
	for _, sub := range c.Commands() {
		a.mark(sub)
	}
}

// group is a command that only holds others.
func group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	c.AddCommand(subs...)
	return c
}

// config is what the hub on this data folder runs with. The address is not: that is the caller's to look for.
func (a *app) config() (config.Config, error) {
	cfg, err := config.Load(config.Flags{Data: a.flags.Data}, func(name string) string {
		if name == "DESKBELL_ADDR" {
			return ""
		}
		return a.getenv(name)
	})
	if err != nil {
		return cfg, &exit{code: exitUsage, err: err}
	}
	return cfg, nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  deskbell version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			doc := map[string]any{"version": config.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "ma2h": ma2hVersion, "window": a.window != nil}
			text := "deskbell " + config.Version
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						doc["revision"] = s.Value
						text += fmt.Sprintf(" (%.12s)", s.Value)
					}
				}
			}
			return a.done(doc, "%s, MA2H %s, %s %s/%s", text, ma2hVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}

// pause waits between two looks at something that changes elsewhere.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
