//go:build desktop && !bindings && !linux

package app

// watchPage does nothing: how the page's process fares is known here on Linux only.
func (w *window) watchPage() {}

// loadPage loads the page again.
func loadPage() {}

// showDead says in the window that there is no page.
func (w *window) showDead() {}
