#!/usr/bin/env bash
# Every test there is. Stops at the first group that fails; says what each took.
. "$(dirname "$0")/lib.sh"
started=$SECONDS
took=()
# phase NAME COMMAND...: runs a group of tests and remembers how long it took.
phase() {
	local name=$1 from=$SECONDS
	shift
	say "$name"
	"$@"
	took+=("$name $((SECONDS - from)) s")
}
gotests=$(mktemp)
gopid=
ended() {
	local rc=$?
	if [ -n "$gopid" ]; then # another group failed before these were told of
		kill -- "-$gopid" 2>/dev/null || true
		cat "$gotests"
	fi
	rm -f "$gotests"
	[ $rc = 0 ] || say "FAILED after $((SECONDS - started)) s; before it:$(printf ' %s;' "${took[@]}")"
}
trap ended EXIT

prepare() {
	need_tools
	# shellcheck disable=SC2086
	install_packages $BUILD_PACKAGES $TEST_PACKAGES
	frontend_dist
	pi_package
	map_package
}
build_both() { build_headless && build_desktop; }
unit_tests() { (cd frontend && npm run --silent test </dev/null); }
browser_tests() { (cd frontend && DESKBELL_HEADLESS="$BIN/deskbell-headless" npm run --silent test:browser </dev/null); }
map_clients() { (cd build/maptest && DESKBELL_HEADLESS="$BIN/deskbell-headless" npm run --silent test </dev/null); }

phase "preparing" prepare
# The Go tests wait more than they compute: they run beside what needs little time of its own, and are told of after it. The
# pointers of SQLite, which is translated from C, are not checked one by one: that alone would take a third of the time. Vet
# reads all of it once, with the rest of the code.
CGO_ENABLED=1 setsid go test -race -vet=off "-gcflags=modernc.org/...=-d=checkptr=0" -timeout 20m ./... >"$gotests" 2>&1 </dev/null &
gopid=$!
go_tests() {
	local rc=0
	wait "$gopid" || rc=$?
	gopid=
	cat "$gotests"
	return $rc
}
phase "building" build_both
phase "reading the code" bash build/scripts/lint.sh
phase "published MAP clients" map_clients
phase "frontend units" unit_tests
phase "go test -race" go_tests
phase "browser" browser_tests
phase "window" bash build/scripts/window-test.sh
say "all tests passed in $((SECONDS - started)) s:$(printf ' %s;' "${took[@]}")"
