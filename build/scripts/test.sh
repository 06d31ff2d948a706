#!/usr/bin/env bash
# Every test there is. Stops at the first group that fails; names the groups at the end.
. "$(dirname "$0")/lib.sh"
started=$SECONDS
need_tools
# shellcheck disable=SC2086
install_packages $BUILD_PACKAGES $TEST_PACKAGES
frontend_dist
bash build/scripts/lint.sh

# The protocol's published vectors run where they lie beside the clone.
if [ -z "${MA2H_VECTORS:-}" ] && [ -d ../shared/vectors/ma2h ]; then
	MA2H_VECTORS=$(cd ../shared/vectors/ma2h && pwd)
	export MA2H_VECTORS
fi

say "go test -race ./..."
CGO_ENABLED=1 go test -race -timeout 10m ./...

build_headless
build_desktop

if have_frontend; then
	say "frontend: unit tests"
	(cd frontend && npm run --silent test </dev/null)
	if grep -q '"test:browser":' frontend/package.json; then
		say "frontend: browser tests"
		(cd frontend && DESKBELL_HEADLESS="$BIN/deskbell-headless" npm run --silent test:browser </dev/null)
	fi
fi

bash build/scripts/window-test.sh
say "all tests passed in $((SECONDS - started)) s"
