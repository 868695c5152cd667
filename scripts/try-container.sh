#!/bin/bash
# try-container.sh [DEBS]: as root and without a container engine, carries out the instructions of
# packaging/Containerfile on the committed tree, in systems of debootstrap (build/system/container-STAGE),
# and runs the image's command as its user. With DEBS, a folder of packages that are built already, the
# first stage is left out.
set -euo pipefail
. scripts/system.sh
instructions=$(sed -e ':join' -e '/\\$/N' -e 's/\\\n//' -e 't join' packaging/Containerfile | grep -E '^[A-Z]+ ')
stage=0
declare -A named
if [ $# -gt 0 ]; then
    named[build]=$(realpath -m build/system/container-debs)
    rm -rf "${named[build]}"
    mkdir -p "${named[build]}/daqloom/dist"
    cp "$1"/*.deb "${named[build]}/daqloom/dist/"
    instructions=$(sed '2,$!d; /^FROM/,$!d' <<<"$instructions")
fi
user=root

while read -r word arguments; do
    echo "$word $arguments"
    read -ra words <<<"$arguments"
    case $word in
    FROM)
        suite=${words[0]#debian:}
        make_system "${suite%-slim}" "build/system/${suite%-slim}"
        rm -rf "build/system/container-$stage"
        cp -a "$system" "build/system/container-$stage"
        system=$(realpath "build/system/container-$stage")
        named[${words[2]:-$stage}]=$system
        stage=$((stage + 1))
        folder=/
        ;;
    COPY)
        case ${words[0]} in
        --from=*) # the shell expands the pattern
            # shellcheck disable=SC2086
            cp -a ${named[${words[0]#--from=}]}${words[1]} "$system${words[2]}"
            ;;
        .) git clone -q --no-hardlinks . "$system${words[1]}" ;;
        *) echo "try-container.sh: COPY $arguments is not known" >&2 && exit 1 ;;
        esac
        ;;
    WORKDIR) folder=$arguments && mkdir -p "$system$folder" ;;
    RUN) in_system "cd $folder && $arguments" </dev/null ;;
    USER) user=$arguments ;;
    ENTRYPOINT) entry=$(tr -d '[]",' <<<"$arguments") ;;
    CMD) ;;
    *) echo "try-container.sh: $word is not known" >&2 && exit 1 ;;
    esac
done <<<"$instructions"

for arguments in --version 'measure laptop --duration "2 s"'; do
    in_system "cd $folder && runuser -u $user -- env -u XDG_RUNTIME_DIR $entry $arguments"
done
