#!/usr/bin/env bash
#
# Where the processor time of one path goes.
#
#   tools/bench/profile.sh [BUILD] VARIANT PATH [CLIENTS]    floor|lua|ours, default 64
#
# Sends the crowd of tools/bench/run.sh undisturbed; with the worker under strace,
# which counts its system calls; with perf, which samples worker and Redis.
# strace slows the worker, so that it finds more to do in each turn: where calls
# are shared by a turn, it shows somewhat too few per request.  Needs strace and
# perf (Debian: strace, linux-perf), and the right to use them.

set -euo pipefail

# shellcheck source=tools/bench/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

usage() {
    echo "usage: tools/bench/profile.sh [BUILD] floor|lua|ours PATH [CLIENTS]" >&2
    exit 2
}

# watch COMMAND...: a run with COMMAND beside it, which ends by INT
watch() {
    local watcher

    "$@" < /dev/null > "$tmp/watch.log" 2>&1 &
    watcher=$!
    send_crowd "$seconds" "$clients" "$variant" "$path"
    kill -INT "$watcher" 2>/dev/null || true
    wait "$watcher" || true
}

# A watcher is started from a shell without job control: INT would be ignored.
attach() { exec env --default-signal=INT "$@"; }

fresh_sale() {
    if [ "$store" != none ]; then
        open_sale "$store" "$path"
        warm_up "$variant" "$path" "$store"
    fi
}

system_calls() {
    local asked

    fresh_sale
    watch attach strace -f -c -U name,calls -o "$tmp/calls" -p "$worker"
    read -r _ asked _ < "$tmp/crowd"

    echo
    echo "system calls of the worker per request, $asked requests under strace"
    awk -v asked="$asked" '$2 ~ /^[0-9]+$/ && $1 != "total" && $2 / asked >= 0.001 {
        printf "  %-16s %6.3f\n", $1, $2 / asked
        sum += $2
    }
    END { printf "  %-16s %6.3f\n", "together", sum / asked }' "$tmp/calls"
}

# report FIELDS LIMIT: percent of samples, most first
report() {
    perf report -i "$tmp/perf.data" --no-children -g none --percent-limit "$2" --sort "$1" \
        --stdio 2>/dev/null | sed -e '/^#/d' -e '/^ *$/d' -e 's/ *-  *- *$//'
}

# samples PID WHO
samples() {
    fresh_sale
    watch attach perf record -q -F 4000 -e cpu-clock -g -o "$tmp/perf.data" -p "$1"

    echo
    echo "where $2 was, percent of samples"
    report dso 0.5
    echo
    echo "and in which functions"
    report dso,symbol 0.6
}

main() {
    local path clients variant store=redis worker
    local build=build

    case ${1:-} in
    floor | lua | ours) ;;
    *) build=${1:-}; shift || usage ;;
    esac
    [ $# -ge 2 ] || usage
    variant=$1 path=$2 clients=${3:-64}
    if [ "$variant" = floor ]; then
        store=none
    fi

    open_stage "$build"
    : > "$tmp/rows"
    make_pools
    start_variants
    worker=$(tr -d ' ' < "/proc/${pid_of[$variant]}/task/${pid_of[$variant]}/children")

    run_crowd http "$variant" "$variant" "$store" "$path" "$clients"
    system_calls
    samples "$worker" "the worker"
    if [ "$store" != none ]; then
        samples "${pid_of[$store]}" redis
    fi
}

main "$@"
