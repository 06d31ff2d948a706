#!/usr/bin/env bash
# Go benchmarks; then, where it can be measured, how long the window takes to paint and what memory it holds.
. "$(dirname "$0")/lib.sh"
need_tools
say "go benchmarks"
go test -run '^$' -bench . -benchmem ./... | grep -vE '^(ok|PASS|\?)' || true
if command -v xvfb-run >/dev/null && [ -x "$BIN/deskbell" ]; then
	say "the window"
	DESKBELL_MEASURE=1 bash build/scripts/window-test.sh -run TestMeasure -v
else
	say "the window is not measured: make test installs what that needs"
fi
