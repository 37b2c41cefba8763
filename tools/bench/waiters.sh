#!/usr/bin/env bash
#
# Ten thousand buyers who wait for their results on one worker: what each costs,
# and how soon all are told.
#
#   tools/bench/waiters.sh [BUILD]
#
# Once with long polls and once with event streams, each time on a fresh nginx.
# Memory is what the worker holds besides what it shares, per waiter, compared
# with the same worker before the first of them came; the kernel's buffers of the
# sockets are not in it.  Results are published as seckilld does it, a thousand in
# one script.  Everything is private and ends with this shell.
#
# Environment: WAITERS (10000), BENCH_LIMIT (120).

set -euo pipefail

# shellcheck source=tools/bench/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

waiters=${WAITERS:-10000}
limit=${BENCH_LIMIT:-120}

# start_nginx reads them.  Each waiter is a connection, and nginx closes new ones
# when less than a sixteenth is free.
# shellcheck disable=SC2034
connections=$((waiters * 17 / 16 + 500)) files=$((waiters * 17 / 16 + 1000))

open_sale() {
    local start_ms=$((${EPOCHREALTIME%.*} * 1000 - 60000))

    redis_script redis << END_REDIS
HSET seckill:control token_key $token_key
SADD seckill:activities 1
SET seckill:stock:{1} 0
XGROUP CREATE seckill:orders:{1} seckilld 0 MKSTREAM
HSET seckill:activity:{1} product_id 1 price 9.90 stock_limit $waiters start_ms $start_ms end_ms $((start_ms + 7200000)) state open max_quantity 1 eligible 0 epoch 1 rev 1 seq 0
EVAL "for i = 1, $waiters do redis.call('SADD', KEYS[1], i) end" 1 seckill:order_users:{1}
HINCRBY seckill:control rev 1
END_REDIS
}

# wait_with NAME QUERY ACCEPT
wait_with() {
    local worker='' name=$1

    start_nginx "$name" waiters redis
    # the port answers before there is a worker
    while [ -z "$worker" ]; do
        read -r worker _ < "/proc/${pid_of[$name]}/task/${pid_of[$name]}/children" || true
    done
    "$here/waiters.pl" "$name" "${port_of[$name]}" "$worker" "$tmp/redis.sock" "$tmp/tokens" "$waiters" "$2" "$3" \
        || die "not all were told"
    stop "$name"
}

main() {
    open_stage "${1:-build}"
    ulimit -n "$files" || die "no room for $waiters sockets: ulimit -n"
    random_hex > "$tmp/auth.key"
    token_key=$(random_hex)
    "$build/seckillctl" token "1..$waiters" --key-file "$tmp/auth.key" --ttl 2h > "$tmp/tokens"

    start_redis redis
    open_sale
    wait_with long-polls "?wait=60" "*/*"
    wait_with event-streams "" "text/event-stream"
    say "$SECONDS s"
}

# whoever called may die, and time is short: both end the bench in order
if [ "${SECKILL_BENCH_GUARD:-}" != "$PPID" ]; then
    SECKILL_BENCH_GUARD=$$ exec setpriv --pdeathsig TERM -- \
        timeout --foreground -k 30 "$limit" "$0" "$@"
fi
main "$@"
