//go:build desktop && !bindings

package app

import (
	"context"
	"os"
	"strings"
	"time"

	bus "github.com/godbus/dbus/v5"

	"deskbell/backend/notify/dbus"
)

// systemIsDark says whether the desktop asks for dark windows, and makes GTK follow where it would not: GTK 3, and WebKit
// with it, go by the theme's name and do not know the setting that today's desktops have. Who sets GTK_THEME decides.
func systemIsDark() bool {
	if theme := os.Getenv("GTK_THEME"); theme != "" {
		return strings.HasSuffix(strings.ToLower(theme), "dark")
	}
	dark, theme := portalTheme()
	if dark && theme != "" && !strings.HasSuffix(strings.ToLower(theme), "dark") {
		os.Setenv("GTK_THEME", "Adwaita:dark")
	}
	return dark || strings.HasSuffix(strings.ToLower(theme), "dark")
}

// portalTheme asks the settings portal, if one runs: whether dark is preferred, and GTK's theme if it knows it. The window
// waits for this, so it is short.
func portalTheme() (dark bool, theme string) {
	addr := dbus.SessionBus(os.Getenv, os.Stat)
	if addr == "" {
		return false, ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	type answer struct {
		dark  bool
		theme string
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() { done <- a }()
		conn, err := bus.Connect(addr, bus.WithContext(ctx))
		if err != nil {
			return
		}
		defer conn.Close()
		const portal = "org.freedesktop.portal.Desktop"
		var running bool
		if err := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, portal).Store(&running); err != nil || !running {
			return
		}
		read := func(namespace, key string) any {
			var v bus.Variant
			err := conn.Object(portal, "/org/freedesktop/portal/desktop").
				CallWithContext(ctx, "org.freedesktop.portal.Settings.Read", 0, namespace, key).Store(&v)
			if err != nil {
				return nil
			}
			inner, ok := v.Value().(bus.Variant) // Read wraps what it answers twice
			if !ok {
				return v.Value()
			}
			return inner.Value()
		}
		scheme, _ := read("org.freedesktop.appearance", "color-scheme").(uint32)
		a.dark = scheme == 1
		a.theme, _ = read("org.gnome.desktop.interface", "gtk-theme").(string)
	}()
	select {
	case a := <-done:
		return a.dark, a.theme
	case <-ctx.Done():
		return false, ""
	}
}
