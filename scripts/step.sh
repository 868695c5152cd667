#!/bin/bash
# step.sh NAME COMMAND...: one line of progress; the output goes to build/log/NAME.log,
# and its end is shown when the command fails.
set -o pipefail
name=$1
shift
log="build/log/$name.log"
mkdir -p build/log

# Counts what is finished, from the output: "[n/m]" of ninja, the packages of pip and apt. A terminal
# shows the last count, a file every tenth part of a build.
progress() {
    local line packages=0 tenth=0
    while read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
            local done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
            if [ -t 2 ]; then
                printf '\r%-28s%s of %s ' "$name" "$done" "$all" >&2
            elif ((10 * done / all > tenth)); then
                tenth=$((10 * done / all))
                printf '%s of %s  ' "$done" "$all" >&2
            fi
        elif [[ $line =~ ^(Collecting|Unpacking)\  && -t 2 ]]; then
            printf '\r%-28s%s packages ' "$name" $((++packages)) >&2
        fi
    done
    [ -t 2 ] && printf '\r\033[K%-28s' "$name" >&2
    return 0
}

printf '%-28s' "$name" >&2
SECONDS=0
if "$@" 2>&1 | tee "$log" | progress; then
    echo "done  $SECONDS s" >&2
else
    status=$?
    echo "FAILED  (the end of $log follows)" >&2
    tail -n 60 "$log" >&2
    grep -q 'No space left on device' "$log" &&
        echo "The disk is full: free space and run make again; finished compilations are kept." >&2
    exit $status
fi
