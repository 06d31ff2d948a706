//go:build desktop && !bindings

package app

import (
	"context"
	"time"

	wailsruntime "github.com/wailsapp/wails/v2/pkg/runtime"

	"deskbell/backend/notify"
)

// What a person reads where the page would be, and what the buttons there say. The page's own words cannot be used: there
// is no page.
const (
	deadTitle = "Deskbell (its page has ended)"
	deadText  = "The page of this window ended several times within a minute, and is not loaded again by itself.\n\n" +
		"The hub goes on: agents can ask, and what they ask is kept. In a browser, deskbell serve --open shows the inbox."
	deadLoad = "Load it again"
	deadQuit = "Quit Deskbell"
)

// pageDied loads the page again after its process has ended, unless that has been of no use. (A process that ends within
// the few milliseconds in which it introduces itself to WebKit ends this one as well: WebKit wants it so.)
func (w *window) pageDied(reason string) {
	if w.toldToEnd() {
		return // Ctrl+C in a terminal ends the page's process too
	}
	w.loaded.Store(false)
	w.center.SetWatching(false)
	w.mu.Lock()
	again := w.deaths.again(time.Now())
	w.mu.Unlock()
	if again {
		w.log.Warn("the page's process has ended; the page is loaded again", "reason", reason)
		loadPage()
		return
	}
	w.log.Error("the page's process ends again and again; the page is not loaded any more, the hub goes on", "reason", reason, "inbox", w.hub.URL())
	w.dead.Store(true)
	w.desktop.setTitle(deadTitle)
	w.showDead()
	ctx, cancel := context.WithTimeout(w.life, 5*time.Second)
	defer cancel()
	// The window says it as well.
	_ = w.sender.Send(ctx, notify.Note{ID: "dead", Title: "Deskbell's window cannot show its page", Body: "The hub goes on. Start Deskbell again to load the page."})
}

// loadDead tries the page once more, because the person asks for it; nothing where there is one.
func (w *window) loadDead() {
	if !w.dead.Swap(false) {
		return
	}
	w.mu.Lock()
	w.deaths = deaths{}
	w.mu.Unlock()
	w.log.Info("the page is loaded again")
	w.desktop.setTitle(title(0))
	loadPage()
}

// windowLost hides the window, as closing it does, after somebody else has destroyed it: it is made anew when it is shown.
func (w *window) windowLost() {
	if w.toldToEnd() {
		return
	}
	w.log.Warn("the window was destroyed from outside; start deskbell again to see it")
	w.hidden.Store(true)
	wailsruntime.WindowHide(w.wails())
	w.center.SetWatching(false)
	w.tellAboutClosing()
}
