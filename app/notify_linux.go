//go:build desktop && !bindings

package app

import (
	"deskbell/backend/notify"
	"deskbell/backend/notify/dbus"
)

// newSender is the desktop's own notification service. Wails' notifier for Linux has no time-out, does not escape, and
// never replaces a note, which is why it is not used here.
func (w *window) newSender() notify.Sender {
	return dbus.New(dbus.Options{App: "Deskbell", Icon: "deskbell", Desktop: "deskbell", Open: w.show})
}

// notifications says whether they can be shown.
func (w *window) notifications() (ok bool, reason string) { return w.sender.(*dbus.Sender).Available() }
