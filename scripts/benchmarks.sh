#!/bin/bash
# benchmarks.sh BUILD PYTHON: runs every benchmark, one after the other; JSON goes to BUILD/results/.
# One that cannot run (no root for network namespaces, say) does not keep the others from running.
set -o pipefail
build=$1
python=$2
results=$build/results
failed=
mkdir -p "$results"

for program in "$build"/programs_bench/*; do
    name=$(basename "$program")
    echo "== $name" >&2
    "$program" --benchmark_out="$results/$name.json" || failed="$failed $name"
done

# A file benchmarks/NAME.py or benchmarks/NAME/run.py is a benchmark; it prints JSON and only that.
for script in benchmarks/*.py benchmarks/*/run.py; do
    [ -e "$script" ] || continue
    name=${script#benchmarks/}
    name=${name%.py}
    name=${name%/run}
    echo "== $name" >&2
    "$python" "$script" | tee "$results/$name.json" || failed="$failed $name"
done

[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
