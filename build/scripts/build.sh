#!/usr/bin/env bash
# Installs what the build needs, then makes both binaries.
. "$(dirname "$0")/lib.sh"
need_tools
# shellcheck disable=SC2086
install_packages $BUILD_PACKAGES
frontend_dist
build_headless
build_desktop
