// Command deskbell: local agents ring, a person answers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"deskbell/app"
	"deskbell/backend"
	"deskbell/backend/config"
)

var started = time.Now()

func main() {
	if app.Generating {
		// The Wails command line runs this build only to write TypeScript: nothing may be touched.
		_ = app.Run(context.Background(), nil, app.Options{})
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is the window, or with "serve" (and in a build that has no window) the hub alone.
func run(ctx context.Context, args []string) int {
	serve := !app.Available
	if len(args) > 0 && args[0] == "serve" {
		serve, args = true, args[1:]
	}
	set := flag.NewFlagSet("deskbell", flag.ContinueOnError)
	var flags config.Flags
	set.StringVar(&flags.Addr, "addr", "", "`HOST:PORT` to listen on; port 0 picks one (default "+config.DefaultAddr+")")
	set.StringVar(&flags.Data, "data", "", "the data folder `DIR`")
	set.StringVar(&flags.TLSCert, "tls-cert", "", "certificate `FILE`")
	set.StringVar(&flags.TLSKey, "tls-key", "", "key `FILE`")
	set.BoolFunc("dev", "developer mode", func(s string) error {
		yes := s == "true"
		flags.Dev = &yes
		return nil
	})
	set.BoolVar(&flags.Open, "open", false, "open the browser inbox")
	hidden := set.Bool("hidden", false, "start without showing the window")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if set.NArg() > 1 || set.NArg() == 1 && serve {
		fmt.Fprintln(os.Stderr, "deskbell: unexpected argument:", set.Arg(set.NArg()-1))
		return 2
	}
	if _, err := app.ParseLink(set.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "deskbell:", err)
		return 2
	}
	cfg, err := config.Load(flags, os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "deskbell:", err)
		return 2
	}

	if !serve {
		if err := app.Check(); err != nil {
			fmt.Fprintln(os.Stderr, "deskbell:", err)
			return 1
		}
	}

	hub, err := backend.Open(ctx, cfg, slog.Default())
	if err != nil {
		// The folder is taken. If a window runs on it, this start is a wish to see that window.
		var running *backend.RunningError
		if !serve && errors.As(err, &running) && app.HandOver(ctx, cfg.Data, set.Arg(0)) == nil {
			return 0
		}
		fmt.Fprintln(os.Stderr, "deskbell:", err)
		return exitCode(err)
	}
	if err := work(ctx, hub, cfg, serve, app.Options{Data: cfg.Data, Link: set.Arg(0), Hidden: *hidden, Started: started, Log: slog.Default(), Notifications: hub.SetNotifications}); err != nil {
		fmt.Fprintln(os.Stderr, "deskbell:", err)
		return exitCode(err)
	}
	return 0
}

// work listens, says so, and runs the hub and the window until either ends.
func work(ctx context.Context, hub *backend.Hub, cfg config.Config, serve bool, o app.Options) (err error) {
	defer func() { err = errors.Join(err, hub.Close()) }()
	if err := hub.Listen(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	fmt.Printf("deskbell ready url=%s data=%s pid=%d\n", hub.URL(), cfg.Data, os.Getpid())
	if serve {
		err = <-ended
		cancel()
		return err
	}
	err = app.Run(ctx, hub, o)
	cancel()
	return errors.Join(err, <-ended)
}

func exitCode(err error) int {
	var running *backend.RunningError
	switch {
	case errors.As(err, &running):
		return 3
	case errors.Is(err, syscall.EADDRINUSE):
		return 4
	}
	return 1
}
