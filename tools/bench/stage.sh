# shellcheck shell=bash
#
# Where a bench plays: the temporary folder, its end, the pools of tokens, and
# the servers of all variants.  Sourced by tools/bench/run.sh and profile.sh.

# servers live in sbin, which the PATH of a plain user lacks
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

# of one run
seconds=${BENCH_SECONDS:-2}

# tokens in a pool, each a user: more than a run can sell to
pool=$((100000 * seconds))

# runs of one group are made side by side, so that the same disturbs them
group=0

# shellcheck source=tools/bench/servers.sh
. "$here/servers.sh"
# shellcheck source=tools/bench/cpu.sh
. "$here/cpu.sh"
# shellcheck source=tools/bench/sale.sh
. "$here/sale.sh"
# shellcheck source=tools/bench/crowd.sh
. "$here/crowd.sh"

# open_stage BUILD: leaves $build and $tmp; everything ends with this shell
open_stage() {
    build=$(cd "$root" && cd "$1" 2>/dev/null && pwd) \
        || { echo "bench: no folder \"$1\": run make first" >&2; exit 2; }

    umask 077
    tmp=$(mktemp -d "${TMPDIR:-/tmp}/seckill-bench.XXXXXX")
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

finish() {
    local code=$?

    trap '' INT TERM HUP
    trap - EXIT
    stop_all
    if [ "$code" -eq 0 ] && ! logs_are_quiet; then
        code=1
    fi
    rm -rf "$tmp"
    exit "$code"
}

random_hex() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }

# One token more than the crowd has: for the question before a run.
make_pools() {
    say "making $pool tokens"
    random_hex > "$tmp/auth.key"
    token_key=$(random_hex)
    "$build/seckillctl" token 1..$((pool + 1)) --key-file "$tmp/auth.key" --ttl 2h > "$tmp/tokens"

    # each with the signature of the next
    head -n $((buyers + 1)) "$tmp/tokens" | awk -F. 'NR > 1 { print head "." $3 } { head = $1 "." $2 }' \
        > "$tmp/bad"

    "$here/sessions.pl" $((pool + 1)) "$tmp/sessions" "$tmp/sessions.resp"
}

# The floor answers with what the module says to a buyer.
start_variants() {
    local body

    start_redis redis
    redis redis --pipe < "$tmp/sessions.resp" > "$tmp/answers"
    start_nginx ours ours redis
    start_nginx lua lua redis

    open_sale redis accepted
    body=$(ask ours accepted "$(head -n 1 "$tmp/tokens")")
    close_sale redis accepted
    start_nginx floor floor none
}
