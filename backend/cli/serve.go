package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/config"
)

// windowCommand is the program without a command: the window, or the hub alone in a build that has none.
func (a *app) windowCommand() *cobra.Command {
	var hidden bool
	var level string
	example := "  deskbell\n  deskbell serve --open"
	if a.window != nil {
		example += "\n  deskbell deskbell://item/msg_0abc"
	}
	c := &cobra.Command{
		Use:   "deskbell",
		Short: "Local agents ring, a person answers",
		Long: "Deskbell is a hub on this machine to which local agents bring their questions, and a window in which a person\n" +
			"answers them. Without a command it opens the window, with the hub running (in a build without a window: the\n" +
			"hub alone, as `deskbell serve` does).",
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.window == nil {
				return a.serve(cmd.Context(), level)
			}
			link := ""
			if len(args) > 0 {
				link = args[0]
			}
			return a.openWindow(cmd.Context(), level, WindowOptions{Link: link, Hidden: hidden})
		},
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return nil
		case a.window == nil || len(args) > 1 || (!strings.HasPrefix(args[0], "deskbell:") && !strings.HasPrefix(args[0], "msg_")):
			return fmt.Errorf("there is no command %q%s", args[0], didYouMean(cmd, args[0]))
		}
		return a.window.CheckLink(args[0])
	}
	c.Version = config.Version
	c.SetVersionTemplate("deskbell {{.Version}}\n")
	a.hubFlags(c, &level)
	c.Flags().BoolVar(&hidden, "hidden", false, "start without showing the window")
	return c
}

func didYouMean(cmd *cobra.Command, word string) string {
	for distance := 1; distance <= 2; distance++ {
		cmd.SuggestionsMinimumDistance = distance
		if s := cmd.SuggestionsFor(word); len(s) > 0 {
			return fmt.Sprintf("; did you mean %q?", s[0])
		}
	}
	return ""
}

// hubFlags are the flags of whatever runs the hub.
func (a *app) hubFlags(c *cobra.Command, level *string) {
	f := c.Flags()
	f.StringVar(&a.flags.Addr, "addr", "", "`HOST:PORT` to listen on; port 0 picks one (or DESKBELL_ADDR; default "+config.DefaultAddr+")")
	f.BoolFunc("dev", "developer mode: relaxations are named in the window and by doctor (or DESKBELL_DEV=1)", func(s string) error {
		dev := s == "true"
		a.flags.Dev = &dev
		return nil
	})
	f.StringVar(&a.flags.TLSCert, "tls-cert", "", "certificate `FILE`: serve https, on any address")
	f.StringVar(&a.flags.TLSKey, "tls-key", "", "key `FILE` of the certificate")
	f.StringVar(level, "log-level", "info", "what is logged to stderr: `LEVEL` is debug, info, warn or error")
}

func (a *app) serveCommand() *cobra.Command {
	var level string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the hub and the browser inbox, without a window",
		Long: "Runs the hub until it is stopped (Ctrl-C, SIGTERM). When it accepts connections it prints one line on stdout:\n\n" +
			"  deskbell ready url=http://127.0.0.1:6224 data=DIR pid=PID\n\n" +
			"It exits 3 when another hub uses the data folder, and 4 when the port is in use.",
		Example: "  deskbell serve --open\n  deskbell serve --addr 127.0.0.1:0 --data /tmp/try",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), level) },
	}
	a.hubFlags(c, &level)
	c.Flags().BoolVar(&a.flags.Open, "open", false, "open the browser inbox, signed in, with $BROWSER or xdg-open")
	return c
}

// logger logs to stderr as text.
func (a *app) logger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level: %q is not debug, info, warn or error", level)
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: l}))
	slog.SetDefault(log)
	return log, nil
}

func (a *app) hubConfig() (config.Config, error) {
	cfg, err := config.Load(a.flags, a.getenv)
	if err != nil {
		return cfg, &exit{code: exitUsage, err: err}
	}
	return cfg, nil
}

func (a *app) serve(ctx context.Context, level string) error {
	log, err := a.logger(level)
	if err != nil {
		return err
	}
	cfg, err := a.hubConfig()
	if err != nil {
		return err
	}
	hub, err := openHub(ctx, cfg, log)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped before it had begun: as clean as later
	}
	if err != nil {
		var other *backend.RunningError
		if cfg.Open && errors.As(err, &other) && other.Other.URL != "" && a.openRunning(ctx, cfg, other.Other) {
			return nil // the inbox is what was asked for
		}
		return err
	}
	return a.work(ctx, hub, cfg, func(ctx context.Context, ended <-chan error) error {
		if cfg.Open {
			a.openInbox(ctx, hub.URL(), local(hub))
		} else {
			a.say("The inbox is at %s. To open it signed in, run `%s serve --open --data %s` in another terminal, or paste the token in %s there.",
				hub.URL(), shellWord(os.Args[0]), shellWord(cfg.Data), filepath.Join(cfg.Data, backend.TokenFile))
		}
		return <-ended
	})
}

func (a *app) openWindow(ctx context.Context, level string, o WindowOptions) error {
	log, err := a.logger(level)
	if err != nil {
		return err
	}
	cfg, err := a.hubConfig()
	if err != nil {
		return err
	}
	if err := a.window.Check(); err != nil {
		return err
	}
	ownerOnly()
	hub, err := openHub(ctx, cfg, log)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		// The folder is taken. If a window runs on it, this start is a wish to see that window.
		var other *backend.RunningError
		if errors.As(err, &other) && a.window.HandOver(ctx, cfg.Data, o.Link) == nil {
			return nil
		}
		return err
	}
	o.Data = cfg.Data
	return a.work(ctx, hub, cfg, func(ctx context.Context, ended <-chan error) error {
		return a.window.Run(ctx, hub, o)
	})
}

// openHub opens the data folder. Another command may have it for a moment; a hub that runs has it for good.
func openHub(ctx context.Context, cfg config.Config, log *slog.Logger) (*backend.Hub, error) {
	patience, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for {
		hub, err := backend.Open(ctx, cfg, log)
		var other *backend.RunningError
		if !errors.As(err, &other) || alive(other.Other.PID) && other.Other.URL != "" {
			return hub, err
		}
		if pause(patience, 50*time.Millisecond) != nil {
			if !alive(other.Other.PID) {
				err = &backend.RunningError{} // whoever has it did not say who it is
			}
			return nil, err
		}
	}
}

// work listens, says so, and runs the hub together with show until either ends.
func (a *app) work(ctx context.Context, hub *backend.Hub, cfg config.Config, show func(context.Context, <-chan error) error) (err error) {
	defer func() { err = errors.Join(err, hub.Close()) }()
	if err := hub.Listen(); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return &exit{exitPortTaken, fmt.Errorf("%s is in use by another program: stop that one, or give another address with --addr (port 0 picks a free one)", cfg.Addr)}
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ran := make(chan error, 1)
	ended := make(chan error, 1)
	go func() {
		err := hub.Run(ctx)
		ran <- err
		ended <- err
	}()
	if _, err := fmt.Fprintf(a.out, "deskbell ready url=%s data=%s pid=%d\n", hub.URL(), cfg.Data, os.Getpid()); err != nil {
		cancel()
		return errors.Join(err, <-ran)
	}
	err = show(ctx, ended)
	cancel()
	if ranErr := <-ran; !errors.Is(err, ranErr) {
		err = errors.Join(err, ranErr)
	}
	return err
}

// openRunning opens the inbox of the hub that runs already.
func (a *app) openRunning(ctx context.Context, cfg config.Config, other backend.Info) (opened bool) {
	token, err := operatorToken(cfg.Data)
	if err != nil {
		a.say("The browser was not opened: %s", err)
		return false
	}
	opened = a.openInbox(ctx, other.URL, a.dial(cfg, other.URL, token))
	if opened {
		a.say("A hub runs on this data folder already (pid %d): the browser was asked to open its inbox, %s. No other hub was started.", other.PID, other.URL)
	}
	return opened
}

// openInbox opens the browser inbox, signed in by a ticket that works once and soon.
func (a *app) openInbox(ctx context.Context, url string, h *hub) (opened bool) {
	var t struct {
		Ticket string `json:"ticket"`
	}
	err := h.Call(ctx, http.MethodPost, "/api/tickets", nil, &t)
	if err == nil {
		err = a.browse(url + "/#ticket=" + t.Ticket)
	}
	if err != nil {
		a.say("The browser was not opened: %s. The inbox is at %s.", err, url)
	}
	return err == nil
}
