#!/usr/bin/env bash
#
# How fast the module is, beside the floor of nginx and a Lua peer.
#
#   tools/bench/run.sh [BUILD] [http] [durable] [orders] [million]   default: the first three
#
#   http     each path by each variant, runs interleaved
#   durable  purchases with Redis' append-only file, fsync everysec and always
#   orders   seckilld into a private MariaDB
#   million  a million orders, and what they leave in Redis
#
# Prints each run, the medians and the ratios we hold ourselves to; writes
# bench.json and bench.svg to $OUT.  docs/performance.md tells how to read them.
# Everything is private, in a temporary folder, and ends with this shell, at the
# latest after $BENCH_LIMIT seconds.
#
# Environment: BENCH_ROUNDS (3), BENCH_SECONDS (2) of one run, BENCH_CLIENTS
# ("64 200"), BENCH_PATHS, BENCH_MILLION (1000000) orders, BENCH_LIMIT (600), OUT (the current folder).

set -euo pipefail

# servers live in sbin, which the PATH of a plain user lacks
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

rounds=${BENCH_ROUNDS:-3}
read -ra client_counts <<< "${BENCH_CLIENTS:-64 200}"
read -ra paths <<< "${BENCH_PATHS:-accepted accepted_redis sold_out repeat limited bad_token}"
limit=${BENCH_LIMIT:-600}
out=$(cd "${OUT:-.}" && pwd)

# shellcheck source=tools/bench/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"
# shellcheck source=tools/bench/orders.sh
. "$here/orders.sh"

usage() {
    echo "usage: tools/bench/run.sh [BUILD] [http] [durable] [orders] [million]" >&2
    exit 2
}

start_durable() {
    local fsync

    for fsync in everysec always; do
        start_redis "redis-$fsync" --appendonly yes --appendfsync "$fsync" \
            --auto-aof-rewrite-percentage 0
        start_nginx "$fsync" ours "redis-$fsync"
    done
}

round_of_http() {
    local path clients

    for path in "${paths[@]}"; do
        for clients in "${client_counts[@]}"; do
            group=$((group + 1))
            run_crowd http floor floor none floor "$clients"
            run_crowd http lua lua redis "$path" "$clients"
            run_crowd http ours ours redis "$path" "$clients"
        done
    done
}

round_of_durable() {
    local clients fsync

    for clients in "${client_counts[@]}"; do
        group=$((group + 1))
        for fsync in everysec always; do
            run_crowd durable "$fsync" "$fsync" "redis-$fsync" accepted "$clients"
        done
    done
}

# As many rounds as were asked for and as fit into the time.
bench_crowd() {
    local round began cost=0

    for ((round = 1; round <= rounds; round++)); do
        if [ $((SECONDS + cost + 15)) -gt "$limit" ]; then
            say "no time for round $round"
            break
        fi
        say "round $round of $rounds"
        began=$SECONDS
        if [ -n "${parts[http]:-}" ]; then
            round_of_http
        fi
        if [ -n "${parts[durable]:-}" ]; then
            round_of_durable
        fi
        cost=$((SECONDS - began))
    done
}

facts_of_machine() {
    {
        echo "date $(date -u +%FT%TZ)"
        echo "cpus $cpus"
        echo "cpu $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
        echo "kernel $(uname -r)"
        echo "nginx $(nginx -v 2>&1 | sed 's/.*nginx\///')"
        echo "redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/')"
        echo "seconds $seconds"
        echo "files $(stat -f -c %T "$tmp")"
    } > "$tmp/machine"
}

main() {
    local part
    local -A parts=()

    build=build
    for part in "$@"; do
        case $part in
        http | durable | orders | million) parts[$part]=1 ;;
        -*) usage ;;
        *) build=$part ;;
        esac
    done
    if [ ${#parts[@]} -eq 0 ]; then
        parts=([http]=1 [durable]=1 [orders]=1)
    fi
    open_stage "$build"

    facts_of_machine
    : > "$tmp/rows"

    if [ -n "${parts[orders]:-}" ]; then
        bench_orders
    fi
    if [ -n "${parts[million]:-}" ]; then
        bench_million
    fi
    if [ -n "${parts[http]:-}${parts[durable]:-}" ]; then
        make_pools
        if [ -n "${parts[http]:-}" ]; then
            start_variants
        fi
        if [ -n "${parts[durable]:-}" ]; then
            start_durable
        fi
        bench_crowd
    fi

    "$here/report.pl" "$tmp/machine" "$tmp/rows" "$out/bench.json" "$out/bench.svg"
    say "wrote $out/bench.json and $out/bench.svg in $SECONDS s"
}

# whoever called may die, and time is short: both end the bench in order
if [ "${SECKILL_BENCH_GUARD:-}" != "$PPID" ]; then
    SECKILL_BENCH_GUARD=$$ exec setpriv --pdeathsig TERM -- \
        timeout --foreground -k 30 "$limit" "$0" "$@"
fi
main "$@"
