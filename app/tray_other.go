//go:build desktop && !bindings && !linux

package app

// startTray does nothing: the dock and the task bar bring a hidden window back.
func (w *window) startTray() {}
