#!/usr/bin/env bash
# Builds and starts: the window where there is a display, else the hub alone.
. "$(dirname "$0")/lib.sh"
need_tools
if has_display; then
	# shellcheck disable=SC2086
	install_packages $BUILD_PACKAGES
	frontend_dist
	build_desktop
	exec "$BIN/deskbell" "$@"
fi
# The window cannot open here, so what it needs may fail without harm; the hub needs none of it.
frontend_dist
build_headless
# shellcheck disable=SC2086
if install_packages $BUILD_PACKAGES; then
	(build_desktop) || say "the desktop binary could not be built; going on with the hub alone"
fi
say "no display (neither DISPLAY nor WAYLAND_DISPLAY is set): starting the hub without a window"
exec "$BIN/deskbell-headless" serve "$@"
