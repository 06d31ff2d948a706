#!/usr/bin/env bash
# Everything that reads the code without running it.
. "$(dirname "$0")/lib.sh"
need_tools

STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Wails is pinned exactly: the window relies on what this version does, and works around what it does wrong.
WAILS=v2.16.0
say "checking pins and modules"
got=$(go list -m -f '{{.Version}}' github.com/wailsapp/wails/v2)
[ "$got" = "$WAILS" ] || die "go.mod wants wails $got, the pin is $WAILS (see build/scripts/lint.sh)"
go mod verify >/dev/null
go mod tidy -diff || die "go.mod or go.sum is not tidy: run go mod tidy"

# What is made from the sources, a program above all, stays out of them for good once it is in.
large=$(git -c safe.directory="$ROOT" ls-files -z | xargs -0 sh -c 'find "$@" -maxdepth 0 -size +2M' -)
[ -z "$large" ] || die "larger than 2 MB, and kept in git: $large"

say "gofmt"
unformatted=$(gofmt -l $(git -c safe.directory="$ROOT" ls-files --cached --others --exclude-standard '*.go' | while read -r f; do [ -f "$f" ] && echo "$f"; done))
[ -z "$unformatted" ] || die "not formatted (gofmt -w): $unformatted"

say "go vet"
go vet ./...
say "staticcheck"
go run "$STATICCHECK" ./...
if pkg-config --exists gtk+-3.0 webkit2gtk-4.1 2>/dev/null; then
	# Only what the tags change: the rest was just checked without them.
	say "go vet and staticcheck with the window's tags"
	go vet -tags "$TAGS,window" . ./app/... ./build/...
	go run "$STATICCHECK" -tags "$TAGS,window" . ./app/... ./build/...
fi
say "go vet for macOS and Windows"
# vet wants to know what it imports, so all of it is compiled once more for each; nobody runs that, so it is not optimised,
# which saves a third of the time. Left to SQLite alone it saves nothing.
for os in darwin windows; do
	GOOS=$os CGO_ENABLED=0 go vet "-gcflags=all=-N -l" ./...
done

say "govulncheck"
if out=$(timeout 180 go run "$GOVULNCHECK" ./... 2>&1); then
	echo "$out" | tail -n 1 >&2
elif grep -qE 'fetching vulnerabilities|dial tcp|no such host|connection refused|i/o timeout|Forbidden' <<<"$out"; then
	say "govulncheck: its database cannot be reached from here; skipped"
else
	echo "$out" >&2
	die "govulncheck found something"
fi

if have_frontend; then
	npm_packages
	for script in check lint; do
		if grep -q "\"$script\":" frontend/package.json; then
			say "frontend: npm run $script"
			(cd frontend && npm run --silent "$script" </dev/null)
		fi
	done
fi
