#!/bin/sh
# Installs the named Debian packages that are missing; without the right to do so, says the command.
# On a system without dpkg it stays silent: CMake then names what it cannot find.
command -v dpkg-query >/dev/null || exit 0

missing=
for package in "$@"; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' ||
        missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "daqloom needs Debian packages that only root may install. Run this, then make again:" >&2
    echo "    sudo apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

install() {
    # shellcheck disable=SC2086  # each word of the lists is an argument
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 $missing
}
# The package lists of a fresh machine are empty or stale: fetch them only when they are needed.
install || { $as_root apt-get update -q && install; }
