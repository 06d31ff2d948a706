#!/usr/bin/env bash
# The real window under Xvfb, with a session bus of its own. Arguments go to go test (for instance -run Close).
. "$(dirname "$0")/lib.sh"
for tool in xvfb-run dbus-run-session openbox xdotool WebKitWebDriver; do
	command -v "$tool" >/dev/null ||
		die "$tool is missing (Debian: apt-get install $TEST_PACKAGES)"
done
frontend_dist
build_desktop # always: what is tested is what the sources say now

mkdir -p "$BIN/windowtest"
# The shim lets WebKitWebDriver steer a window that never asked to be steered; it is not part of any shipped binary.
# shellcheck disable=SC2046
gcc -shared -fPIC -O1 -o "$BIN/windowtest/automation.so" build/windowtest/shim/automation.c $(pkg-config --cflags webkit2gtk-4.1)
go build -tags "$TAGS,window" -o "$BIN/windowtest/probe" ./build/windowtest/probe

# A home of its own: WebKit and GTK write caches and settings there.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
env -u XDG_DATA_HOME -u XDG_CONFIG_HOME -u XDG_CACHE_HOME -u WAYLAND_DISPLAY \
	GOPATH="$(go env GOPATH)" GOCACHE="$(go env GOCACHE)" GOMODCACHE="$(go env GOMODCACHE)" HOME="$home" \
	DESKBELL_BIN="$BIN" LIBGL_ALWAYS_SOFTWARE=1 \
	xvfb-run -a -s "-screen 0 1440x900x24" dbus-run-session -- \
	go test -tags window -count=1 -timeout 15m ./build/windowtest "$@"
