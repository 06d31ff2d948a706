// Package app is the window: the hub's own page in a native frame, and what a page cannot do by itself (open a link in the
// browser, ring, come back when a second start asks for it). It is the only package that may import Wails, and only
// under the build tags desktop and bindings: everything else here is plain Go.
package app

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"deskbell/backend/notify"
)

// Hub is what the window needs of the running hub. Its channels are closed when ctx has ended and nothing is read for them
// any more: the window waits for that before it returns.
type Hub interface {
	Handler() http.Handler                             // the page and what it calls, as the operator, without a token
	Changes(ctx context.Context) <-chan []byte         // coalesced changes, JSON {"rev","items","topics"}
	Attention(ctx context.Context) <-chan notify.Event // what to ring about, and what to take back
	URL() string                                       // where the browser inbox is
}

// Options say how the window opens. Data is needed, the rest may be empty.
type Options struct {
	Data    string    // the data folder, for the window's place and the socket that a second start talks to
	Link    string    // a deskbell:// link to open, or an item's id
	Hidden  bool      // start without showing the window
	Started time.Time // when the process began, for the time until the first paint
	Log     *slog.Logger

	Notifications func(ok bool, reason string) // told whether notifications can be shown, at the start and when that changes
}

// title is the window's title, with how many items need the person.
func title(n int) string {
	switch {
	case n <= 0:
		return "Deskbell"
	case n > 999:
		return "(999+) Deskbell"
	}
	return "(" + strconv.Itoa(n) + ") Deskbell"
}
