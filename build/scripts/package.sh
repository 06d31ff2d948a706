#!/usr/bin/env bash
# A Debian package of the desktop binary: build/bin/deskbell_VERSION_ARCH.deb.
. "$(dirname "$0")/lib.sh"
bash build/scripts/build.sh
command -v dpkg-deb >/dev/null || die "dpkg-deb is missing: packages are built on Debian and its kin"

# A Debian version begins with a digit and knows no dash of its own.
version=$(version | sed 's/^v//; s/-/./g')
case $version in [0-9]*.*) ;; *) version=0.0.0+$version ;; esac
arch=$(dpkg --print-architecture)

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
install -Dm755 "$BIN/deskbell" "$tree/usr/bin/deskbell"
install -Dm644 build/linux/deskbell.desktop "$tree/usr/share/applications/deskbell.desktop"
install -Dm644 build/appicon.png "$tree/usr/share/icons/hicolor/512x512/apps/deskbell.png"
install -Dm644 build/appicon.svg "$tree/usr/share/icons/hicolor/scalable/apps/deskbell.svg"
if [ -f LICENSE ]; then install -Dm644 LICENSE "$tree/usr/share/doc/deskbell/copyright"; fi
mkdir -p "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: deskbell
Version: $version
Architecture: $arch
Maintainer: The Deskbell developers <deskbell@localhost>
Section: utils
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: libgtk-3-0 | libgtk-3-0t64, libwebkit2gtk-4.1-0
Recommends: xdg-utils, dbus
Description: Local agents ring, a person answers
 Deskbell runs a hub on this machine in which a person answers the questions
 that local agents ask, and keeps the record of both.
CONTROL
chmod -R go-w "$tree"
chmod 755 "$tree" # mktemp made it private
deb=$BIN/deskbell_${version}_$arch.deb
dpkg-deb --root-owner-group -Zxz -b "$tree" "$deb" >/dev/null
say "made ${deb#"$ROOT"/}"
