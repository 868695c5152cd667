#!/bin/sh
# step.sh NAME COMMAND...: one line of progress; the output goes to build/log/NAME.log,
# and its end is shown when the command fails.
name=$1
shift
log="build/log/$name.log"
mkdir -p build/log
printf '%-28s' "$name" >&2
start=$(date +%s)
if "$@" >"$log" 2>&1; then
    echo "done  $(($(date +%s) - start)) s" >&2
else
    status=$?
    echo "FAILED  (the end of $log follows)" >&2
    tail -n 60 "$log" >&2
    exit $status
fi
