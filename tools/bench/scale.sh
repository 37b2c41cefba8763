#!/usr/bin/env bash
#
# Much of everything at once: what a node does with it, and what it costs Redis.
#
#   tools/bench/scale.sh [BUILD]
#
#   activities  1,000 sales at once, a purchase in each in turn
#   users       1,000,000 distinct buyers through a zone of 16 MiB
#   ids         activities that do not exist, at full speed: the same ones again
#               and again, and always new ones
#
# Four workers, a zone of 16 MiB, the module's defaults.  Prints a table; ends with
# an error when more than one in a thousand heard a 5xx, which a machine that
# stalls causes, or when the books disagree.  Everything is
# private and ends with this shell, at the latest after $BENCH_LIMIT seconds.
#
# Environment: SCALE_USERS (1000000), SCALE_ACTIVITIES (1000), BENCH_LIMIT (240).

set -euo pipefail

# shellcheck source=tools/bench/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

users=${SCALE_USERS:-1000000}
activities=${SCALE_ACTIVITIES:-1000}
limit=${BENCH_LIMIT:-240}

# of runs that have no number of requests
seconds=5

# for all runs
clients=64

# start_nginx reads it
# shellcheck disable=SC2034
worker_count=4

# ids of activities that do not exist, and how many of them come again and again;
# a node remembers 16,384
first_unknown=500000000
unknown=10000

open_sales() {
    local id

    for ((id = $1; id < $1 + $2; id++)); do
        echo "SADD seckill:activities $id"
        echo "SET seckill:stock:{$id} $plenty"
        echo "XGROUP CREATE seckill:orders:{$id} seckilld 0 MKSTREAM"
        echo "HSET seckill:activity:{$id} product_id 1 price 9.90 stock_limit $plenty start_ms $start_ms" \
             "end_ms $((start_ms + 7200000)) state open max_quantity 1 eligible 0 epoch 1 rev 1 seq 0"
    done | redis_script redis
    redis redis hincrby seckill:control rev 1 > /dev/null
}

# crowd SECONDS SKIP COUNT FIRST IDS: leaves asked, took, p50, p99, refused, failed
crowd() {
    timeout $(($1 + 30)) wrk --latency -t 1 -c "$clients" -d "${1}s" --timeout 5s -s "$here/scale.lua" \
        "http://127.0.0.1:${port_of[scale]}/buy" -- "$tmp/tokens" "${@:2}" > "$tmp/wrk.out" 2>&1 \
        || { cat "$tmp/wrk.out" >&2; die "wrk failed"; }
    read -r _ asked took p50 p99 refused failed < <(grep '^crowd ' "$tmp/wrk.out") \
        || { cat "$tmp/wrk.out" >&2; die "wrk said nothing"; }
    [ "$failed" -eq 0 ] || die "$failed requests failed"
    [ $((refused * 1000)) -le "$asked" ] || die "$refused of $asked requests heard a 5xx"
}

# status METRIC: the sum over its labels
status() {
    curl -s "http://127.0.0.1:${port_of[scale]}/status" \
        | awk -v name="$1" 'index($1, name) == 1 { sum += $2 } END { printf "%d", sum }'
}

# KiB that the workers hold besides what they share
private_kib() {
    local pid pages shared sum=0
    local -a family=()

    read -ra family < "/proc/${pid_of[scale]}/task/${pid_of[scale]}/children" || true
    for pid in "${family[@]}"; do
        read -r _ pages shared _ < "/proc/$pid/statm"
        sum=$((sum + (pages - shared) * $(getconf PAGESIZE) / 1024))
    done
    echo "$sum"
}

# commands that Redis ran for the module, of one kind
redis_calls() {
    redis redis info commandstats | tr -d '\r' \
        | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0
}

row() { printf '  %-44s %10s   %s\n' "$@"; }

# Answers and the books of a range of sales.  A crowd on a machine that stalls
# hears "busy": that is no purchase, and counted apart.
check_sales() {
    local id entries=0 sold=0 known=0
    local -a n

    mapfile -t n < <(for ((id = $1; id < $1 + $2; id++)); do
        printf '%s\n' "XLEN seckill:orders:{$id}" "SCARD seckill:order_users:{$id}" "GET seckill:stock:{$id}"
    done | redis redis)
    for ((id = 0; id < $2; id++)); do
        entries=$((entries + n[id * 3])) known=$((known + n[id * 3 + 1])) sold=$((sold + plenty - n[id * 3 + 2]))
    done
    if [ "$sold" -ne "$entries" ] || [ "$sold" -ne "$known" ]; then
        die "books disagree: $sold units sold, $known buyers, $entries entries"
    fi
    row "    sold, in stock, buyers and stream alike" "$sold" ""
}

many_activities() {
    local batches purchases

    open_sales 10001 "$activities"
    batches=$(status seckill_batches_total) purchases=$(status seckill_batch_purchases_total)
    crowd "$seconds" 0 0 10001 "$activities"
    sleep 0.2
    batches=$(($(status seckill_batches_total) - batches))
    purchases=$(($(status seckill_batch_purchases_total) - purchases))

    row "$activities activities at once, requests/s" "$((asked * 1000000 / took))" \
        "p50 $((p50 / 1000)).$((p50 % 1000 / 100)) ms, p99 $((p99 / 1000)).$((p99 % 1000 / 100)) ms"
    row "    answered with 5xx" "$refused" ""
    row "    purchases in a call of the script" "$(awk "BEGIN { printf \"%.1f\", $purchases / ($batches ? $batches : 1) }")" ""
    check_sales 10001 "$activities"
}

many_users() {
    local first=$((users / 10)) early late evicted began=$SECONDS busy came

    open_sales 20001 1
    crowd 60 0 "$first" 20001 1
    busy=$refused came=$asked early=$(private_kib)
    crowd 110 "$first" $((users - first)) 20001 1
    busy=$((busy + refused)) came=$((came + asked)) late=$(private_kib) evicted=$(status seckill_zone_evictions_total)
    sleep 0.2

    if [ "$came" -gt "$users" ]; then
        came=$users                     # a few had left before they were counted
    fi
    row "$came distinct users, requests/s of the last 9/10" "$((asked * 1000000 / took))" "$((SECONDS - began)) s"
    row "    answered with 5xx" "$busy" ""
    row "    records given up for others" "$evicted" "$(status seckill_zone_records) kept"
    row "    private KiB of the workers, after 1/10" "$early" ""
    row "    private KiB of the workers, at the end" "$late" ""
    check_sales 20001 1
    [ "$evicted" -gt 0 ] || die "the zone of 16 MiB was not full"
}

# random_ids WHAT FIRST IDS
random_ids() {
    local ids=${3#-}

    redis redis config resetstat > /dev/null
    crowd "$seconds" 0 0 "$2" "$3"
    sleep 0.2
    if [ "$ids" -gt "$asked" ]; then
        ids=$asked
    fi
    row "ids that do not exist, $1, requests/s" "$((asked * 1000000 / took))" "$ids ids"
    row "    answered with 5xx" "$refused" ""
    row "    Redis commands per id" "$(awk "BEGIN { printf \"%.3f\", $(redis_calls hmget) / $ids }")" \
        "per request $(awk "BEGIN { printf \"%.3f\", $(redis_calls hmget) / $asked }")"
    row "    of them for purchases" "$(redis_calls evalsha)" ""
}

main() {
    local asked took p50 p99 refused failed start_ms

    open_stage "${1:-build}"
    say "making $users tokens"
    random_hex > "$tmp/auth.key"
    token_key=$(random_hex)
    "$build/seckillctl" token "1..$users" --key-file "$tmp/auth.key" --ttl 2h > "$tmp/tokens"

    start_redis redis
    start_ms=$((${EPOCHREALTIME%.*} * 1000 - 60000))
    redis redis hset seckill:control token_key "$token_key" > /dev/null
    start_nginx scale scale redis

    many_activities
    random_ids "the same again and again" "$first_unknown" "-$unknown"
    random_ids "always new" $((first_unknown * 2)) 1000000000
    many_users
    say "$SECONDS s"
}

# whoever called may die, and time is short: both end the bench in order
if [ "${SECKILL_BENCH_GUARD:-}" != "$PPID" ]; then
    SECKILL_BENCH_GUARD=$$ exec setpriv --pdeathsig TERM -- \
        timeout --foreground -k 30 "$limit" "$0" "$@"
fi
main "$@"
