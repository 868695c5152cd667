#!/bin/bash
# deb.sh PYTHON: the Debian packages for this release of Debian, in dist/. PYTHON has the build backend.
set -euo pipefail
folder=build/deb
rm -rf "$folder"
mkdir -p "$folder" dist
"$1" -c "import sys; sys.path[:0] = ['scripts/backend']; import recorded_build as b; b.build_sdist('$folder')"
# Folder without version in its name: the compiler cache knows the objects of an earlier build.
tree=$folder/daqloom
mkdir "$tree"
tar xf "$folder"/daqloom-*.tar.gz -C "$tree" --strip-components=1
cp -r "$tree/packaging/debian" "$tree/debian"

# 0.2.0rc1.post3 sorts before 0.2.0, and packages of Debian 12 before those of Debian 13.
version=$(python3 "$tree/src/daqloom/base/sources.py" | sed -E 's/\.?(dev|rc|a|b)/~\1/')
release=$(sed -n 's/^VERSION_ID="\(.*\)"/\1/p' /etc/os-release)
cat >"$tree/debian/changelog" <<EOF
daqloom ($version+deb$release) unstable; urgency=medium

  * See CHANGELOG.md of the sources.

 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $(date -R)
EOF
(cd "$tree" && dpkg-buildpackage --unsigned-changes --build=binary)
# The project has no address for mail.
lintian --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
    --allow-root "$folder"/*.changes
rm -f dist/*.deb
mv "$folder"/*.deb dist/
ls -l dist/*.deb
