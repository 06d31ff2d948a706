// Command deskbell: local agents ring, a person answers.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"deskbell/app"
	"deskbell/backend"
	"deskbell/backend/cli"
	"deskbell/backend/supervise"
)

var started = time.Now()

func main() {
	if app.Generating {
		// The Wails command line runs this build only to write TypeScript: nothing may be touched.
		_ = app.Run(context.Background(), nil, app.Options{})
		return
	}
	supervise.Main() // in a process that the hub starts to watch over another one
	os.Exit(cli.Main(os.Args[1:], window()))
}

// window is how the command line opens the window; nil in a build that has none.
func window() *cli.Window {
	if !app.Available {
		return nil
	}
	return &cli.Window{
		Check: app.Check,
		Run: func(ctx context.Context, hub *backend.Hub, o cli.WindowOptions) error {
			return app.Run(ctx, hub, app.Options{Data: o.Data, Link: o.Link, Hidden: o.Hidden, Started: started, Log: slog.Default(), Notifications: hub.SetNotifications})
		},
		HandOver: app.HandOver,
		CheckLink: func(link string) error {
			_, err := app.ParseLink(link)
			return err
		},
	}
}
