# Shared by the scripts beside it; each sources it first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ROOT=$PWD
BIN=$ROOT/build/bin
STAMPS=$ROOT/build/.stamps
mkdir -p "$BIN" "$STAMPS"

# A clone owned by somebody else must build too; Go would otherwise ask git and fail.
case " ${GOFLAGS:-} " in *" -buildvcs="*) ;; *) export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false" ;; esac

TAGS=desktop,production,webkit2_41
BUILD_PACKAGES="gcc libc6-dev pkg-config libgtk-3-dev libwebkit2gtk-4.1-dev"
TEST_PACKAGES="xvfb xauth openbox xdotool dbus dbus-x11 at-spi2-core webkit2gtk-driver imagemagick chromium fonts-dejavu"

say() { if [ -t 2 ]; then printf '\033[1m==>\033[0m %s\n' "$*" >&2; else printf '==> %s\n' "$*" >&2; fi; }
die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# slow PATH: what to say of a step that has not yet made PATH.
slow() { [ -e "$1" ] || printf ' (the first time this takes some minutes, in silence)'; }

# need_tools: what must be there before anything else.
need_tools() {
	command -v go >/dev/null || die "Go is missing: install it from https://go.dev/dl/ (go.mod says which version)"
	case $(GOTOOLCHAIN=local go env GOVERSION) in
	go1.? | go1.?.* | go1.1* | go1.20*) die "$(GOTOOLCHAIN=local go env GOVERSION) is too old: 1.21 or newer fetches the version that go.mod names: https://go.dev/dl/" ;;
	esac
	command -v node >/dev/null && command -v npm >/dev/null || die "Node.js (20.19 or newer, with npm) is missing: https://nodejs.org"
	node -e 'const [a,b]=process.versions.node.split(".").map(Number); process.exit(a>20||(a==20&&b>=19)?0:1)' ||
		die "Node.js $(node -v) is too old: the frontend needs 20.19 or newer"
}

# missing PACKAGE...: those that are not installed.
missing() {
	local p
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf '%s ' "$p"
	done
}

# install_packages PACKAGE...: installs what is missing, or says what to install.
install_packages() {
	command -v apt-get >/dev/null || {
		say "no apt-get here: make sure that the equivalents of these are installed: $*"
		return 0
	}
	local want sudo=
	want=$(missing "$@")
	[ -n "$want" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || { say "not root and no sudo; as root: apt-get install -y $want"; return 1; }
		sudo=sudo
		[ -t 0 ] || sudo="sudo -n"
	fi
	say "installing system packages (this takes some minutes, in silence): $want"
	local apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120"
	# The package lists may be old or absent: refresh them only when the first try fails.
	# shellcheck disable=SC2086
	$apt install -y --no-install-recommends $want >"$STAMPS/apt.log" 2>&1 </dev/null ||
		{ $apt update >"$STAMPS/apt.log" 2>&1 </dev/null && $apt install -y --no-install-recommends $want >>"$STAMPS/apt.log" 2>&1 </dev/null; } ||
		{ tail -n 20 "$STAMPS/apt.log" >&2; say "apt-get could not install: $want"; return 1; }
}

have_frontend() { [ -f frontend/package.json ]; }

# stamped NAME HASH COMMAND...: runs the command unless it ran well for the same hash.
stamped() {
	local stamp=$STAMPS/$1 hash=$2
	shift 2
	[ "$(cat "$stamp" 2>/dev/null)" != "$hash" ] || return 0
	"$@"
	printf '%s\n' "$hash" >"$stamp"
}

sum() { sha256sum | cut -d' ' -f1; }

npm_packages() {
	have_frontend || return 0
	[ -d frontend/node_modules ] || rm -f "$STAMPS/npm"
	stamped npm "$( (node -v; cat frontend/package.json frontend/package-lock.json) | sum)" npm_ci
}
# pi_package installs the pi that the tests run, beside the tests: nothing of it is part of the program.
pi_package() {
	[ -d build/pitest/node_modules ] || rm -f "$STAMPS/pi"
	stamped pi "$( (node -v; cat build/pitest/package.json build/pitest/package-lock.json) | sum)" pi_ci
}
pi_ci() {
	say "installing the pi that the tests run$(slow build/pitest/node_modules)"
	(cd build/pitest && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null)
}
# map_package installs the clients of MAP that the tests run, likewise.
map_package() {
	[ -d build/maptest/node_modules ] || rm -f "$STAMPS/map"
	stamped map "$( (node -v; cat build/maptest/package.json build/maptest/package-lock.json) | sum)" map_ci
}
map_ci() {
	say "installing the published clients of MAP$(slow build/maptest/node_modules)"
	(cd build/maptest && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null)
}
npm_ci() {
	say "installing npm packages$(slow frontend/node_modules)"
	(cd frontend && npm ci --no-audit --no-fund --loglevel=error </dev/null)
}

frontend_dist() {
	have_frontend || { say "no frontend/package.json: the page stays empty"; return 0; }
	npm_packages
	[ -f frontend/dist/index.html ] || rm -f "$STAMPS/dist"
	local hash
	hash=$(find frontend -path frontend/node_modules -prune -o -path frontend/dist -prune -o -path frontend/test-results -prune -o -type f -print0 |
		LC_ALL=C sort -z | xargs -0 sha256sum | sum)
	stamped dist "$hash" vite_build
}
vite_build() {
	say "building the frontend"
	(cd frontend && npm run --silent build </dev/null)
	[ -f frontend/dist/index.html ] || die "the frontend build made no frontend/dist/index.html"
}

version() { git -c safe.directory="$ROOT" describe --tags --always --dirty 2>/dev/null || echo dev; }
ldflags() { echo "-s -w -X deskbell/backend/config.Version=$(version)"; }

build_headless() {
	say "building build/bin/deskbell-headless$(slow "$BIN/deskbell-headless")"
	CGO_ENABLED=0 go build -trimpath -ldflags "$(ldflags)" -o "$BIN/deskbell-headless" .
}

build_desktop() {
	pkg-config --exists gtk+-3.0 webkit2gtk-4.1 ||
		die "the headers of GTK 3 and WebKitGTK 4.1 are missing (Debian: apt-get install libgtk-3-dev libwebkit2gtk-4.1-dev)"
	say "building build/bin/deskbell$(slow "$BIN/deskbell")"
	CGO_ENABLED=1 go build -tags "$TAGS" -trimpath -ldflags "$(ldflags)" -o "$BIN/deskbell" .
}

has_display() { [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; }
