#!/bin/bash
# try-wheels.sh SUITE [FOLDER]: as root, installs the wheels of dist/ in a new system of that Debian suite
# (bookworm has Python 3.11, trixie 3.13), which has nothing else of ours, and runs what a newcomer runs.
# The system stays in FOLDER (default: build/system/SUITE) for the next try.
set -euo pipefail
suite=$1
system=$(realpath -m "${2:-build/system/$suite}")
mkdir -p "$(dirname "$system")"
if [ ! -e "$system/ready" ]; then
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$system" >"$system.log"
    # Name service and certificates of this machine, which may sit behind a proxy of its own.
    cp /etc/resolv.conf "$system/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
    touch "$system/ready"
fi
rm -rf "$system/wheels" "$system/try"
mkdir "$system/wheels" "$system/try"
cp dist/*.whl "$system/wheels/"

# mount and the process table are the namespace's own, and end with it.
in_system() {
    unshare --mount --pid --fork chroot "$system" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/try LANG=C.UTF-8 \
        COLUMNS=100 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore /bin/sh -euc "
            mount -t proc proc /proc && mount -t tmpfs shm /dev/shm
            cd /try
            $1"
}

size() { in_system "du -sm --exclude=pip --exclude=setuptools /try/$1/lib | cut -f1"; }

for extras in "" "[live]" "[all]"; do
    name=venv${extras//[\[\]]/-}
    in_system "python3 -m venv $name && $name/bin/pip install -q --find-links /wheels 'daqloom$extras'"
    echo "daqloom$extras: $(size "$name") MB"
done
in_system "venv/bin/daqloom --version; venv/bin/daqloom demo"
in_system "venv-live-/bin/daqloom measure laptop --duration '2 s'"
in_system "venv-all-/bin/daqloom demo && ls -l demo-output"
