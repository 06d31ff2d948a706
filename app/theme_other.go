//go:build desktop && !bindings && !linux

package app

// systemIsDark is for the colour behind the page before it paints; the system's web view follows the theme by itself.
func systemIsDark() bool { return false }
