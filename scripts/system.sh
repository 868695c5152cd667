# shellcheck shell=bash
# Bare Debian systems for scripts that try daqloom in one, as root; to be sourced.

# make_system SUITE FOLDER: the minimal system of a Debian suite (bookworm, trixie) in FOLDER, where it
# stays for the next try.
make_system() {
    system=$(realpath -m "$2")
    mkdir -p "$(dirname "$system")"
    [ ! -e "$system/ready" ] || return 0
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv "$1" "$system" >"$system.log"
    # Name service and certificates of this machine, which may sit behind a proxy of its own.
    cp /etc/resolv.conf "$system/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
    touch "$system/ready"
}

# in_system COMMANDS: as root of the system, in its folder /try, without the variables of this shell.
# Mounts and processes, and with `apart=1` the network too, are the commands' own, and end with them. A
# process under chroot could make no user namespace, so the root is changed instead.
in_system() {
    # shellcheck disable=SC2016  # the new shell expands them
    unshare --mount --pid --fork ${apart:+--net} /bin/sh -euc '
        mount --bind "$1" "$1"
        cd "$1"
        mount --rbind /dev dev
        mount --rbind /sys sys
        mount -t proc proc proc
        mount -t tmpfs shm dev/shm
        mount -t tmpfs run run
        mkdir -p try
        pivot_root . .
        umount -l .
        cd /try
        exec /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/try XDG_RUNTIME_DIR=/run LANG=C.UTF-8 \
            COLUMNS=100 DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
            /bin/sh -euc "$2"' - "$system" "$1"
}
