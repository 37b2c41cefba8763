#!/usr/bin/env bash
#
# A private stack under run/: Redis, MariaDB, seckilld and nginx with the module.
#
#   tools/stack.sh demo [BUILD]     start, preheat, let a crowd buy, check, stop
#   tools/stack.sh up [BUILD]       start, preheat, leave it running
#   tools/stack.sh status           what runs, and where
#   tools/stack.sh down             stop what "up" started
#
# Everything is on unix sockets, nginx on a free loopback port (or PORT=n), so
# that two checkouts can run at once and no service of the system is touched.
# What "demo" starts ends with it, also on Ctrl-C and when it is killed.
# Everything begins anew each time: run/ is emptied first.

set -euo pipefail

# servers live in sbin, which the PATH of a plain user lacks
PATH=$PATH:/usr/sbin:/sbin

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
run=$root/run

# shellcheck source=tools/stack/servers.sh
. "$root/tools/stack/servers.sh"
# shellcheck source=tools/stack/sale.sh
. "$root/tools/stack/sale.sh"

usage() {
    echo "usage: tools/stack.sh demo|up [BUILD] | status | down" >&2
    exit 2
}

# The end of everything: in reverse order, whatever happened.
finish() {
    local code=$?

    trap '' INT TERM HUP
    trap - EXIT
    # above 128 is a signal: somebody wanted the end, nothing to explain
    if [ "$code" -ne 0 ] && [ "$code" -le 128 ]; then
        show_logs
    fi
    stop_all
    exit "$code"
}

demo() {
    local code=0

    if any_running; then
        die "the stack of \"make up\" is running here: \"make down\" first"
    fi

    lifetime=ours
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP

    start_all
    open_sale
    verify_sale || code=$?
    stop_all
    if ! logs_are_quiet; then
        code=1
    fi
    trap - EXIT

    if [ "$code" -eq 0 ]; then
        echo "demo: passed, the logs are in $run"
    else
        echo "demo: FAILED, the logs are in $run" >&2
    fi
    exit "$code"
}

up() {
    if any_running; then
        echo "already running; \"make down\" stops it"
        status
        exit 0
    fi

    lifetime=free
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP

    start_all
    open_sale
    ctl preheat 2
    demo_users
    trap - EXIT
    how_to_use
}

status() {
    local name

    for name in "${servers[@]}"; do
        if running "$name"; then
            printf '  %-9s pid %-7s log %s\n' "$name" "$(pid_of "$name")" "$(log_of "$name")"
        else
            printf '  %-9s not running\n' "$name"
        fi
    done
    if running nginx && [ -r "$run/port" ]; then
        echo "  page      http://127.0.0.1:$(cat "$run/port")/"
        echo "  address   http://127.0.0.1:$(cat "$run/port")/api/seckill/1"
    fi
}

down() {
    stop_all
    if any_running; then
        echo "stack.sh: something does not stop, see \"tools/stack.sh status\"" >&2
        exit 1
    fi
}

main() {
    local verb=${1:-}

    if [ $# -lt 1 ] || [ $# -gt 2 ]; then
        usage
    fi
    build=${2:-build}

    case $verb in
    demo | up)
        # the death of make, or of whoever called, ends the demo too
        if [ "$verb" = demo ] && [ "${SECKILL_STACK_GUARD:-}" != "$PPID" ]; then
            SECKILL_STACK_GUARD=$PPID exec setpriv --pdeathsig TERM -- "$0" "$@"
        fi
        build=$(cd "$root" && cd "$build" 2>/dev/null && pwd) \
            || { echo "stack.sh: no folder \"${2:-build}\": run make first" >&2; exit 2; }
        lock_stack
        "$verb"
        ;;
    down)
        lock_stack
        down
        ;;
    status) status ;;
    *) usage ;;
    esac
}

main "$@"
