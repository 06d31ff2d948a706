//go:build desktop && !bindings

package app

import (
	"context"
	"os"
	"time"

	"fyne.io/systray"
	bus "github.com/godbus/dbus/v5"

	"deskbell/backend/notify/dbus"
	"deskbell/build"
)

// startTray puts an icon in the panel where the desktop has a place for one (many have none, which is why nothing depends
// on it). It speaks D-Bus only; the icon goes when the process ends.
func (w *window) startTray() {
	if !hasTray() {
		return
	}
	start, _ := systray.RunWithExternalLoop(func() {
		systray.SetIcon(build.Icon)
		systray.SetTitle("Deskbell")
		systray.SetTooltip("Deskbell")
		systray.SetOnTapped(func() { w.show("") })
		open := systray.AddMenuItem("Show Deskbell", "")
		quit := systray.AddMenuItem("Quit", "")
		go func() {
			for {
				select {
				case <-open.ClickedCh:
					w.show("")
				case <-quit.ClickedCh:
					w.quit()
				case <-w.life.Done():
					return
				}
			}
		}()
	}, nil)
	start()
}

// hasTray asks whether something shows icons. The library would otherwise complain, and might start a bus of its own.
func hasTray() bool {
	addr := dbus.SessionBus(os.Getenv, os.Stat)
	if addr == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := bus.Connect(addr, bus.WithContext(ctx))
	if err != nil {
		return false
	}
	defer conn.Close()
	var there bool
	err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, "org.kde.StatusNotifierWatcher").Store(&there)
	return err == nil && there
}
