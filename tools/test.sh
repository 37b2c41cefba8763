#!/usr/bin/env bash
#
# Runs every test against what was built in BUILD (default: build).
#
#   tools/test.sh [BUILD] [FILE.t ...]     FILE.t: only these, the same way
#
# Plain C first, then the suites under t/ with prove.  A process that a test
# left behind is a failure too: under tini an orphan becomes tini's child.
# Sanitized builds (BUILD/.sanitize) run in the stock nginx with the runtimes
# preloaded, which t/lib does.

set -euo pipefail

# servers live in sbin, which the PATH of a plain user lacks
PATH=$PATH:/usr/sbin:/sbin

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

build=${1:-build}
shift || true

# pid 1 of a container may reap orphans slowly or never: tini does
if [ -z "${SECKILL_TINI:-}" ] && command -v tini >/dev/null; then
    SECKILL_TINI=1 exec tini -s -g -- "$0" "$build" "$@"
fi

[ -d "$build" ] || { echo "test.sh: no folder \"$build\": run make first" >&2; exit 2; }
build=$(cd "$build" && pwd)

export SECKILL_BUILD=$build
export SECKILL_MARIADB_TEMPLATE=$root/build/mariadb-template
export TEST_NGINX_LOAD_MODULES=$build/ngx_http_seckill_module.so
export TEST_NGINX_BINARY=${TEST_NGINX_BINARY:-$(command -v nginx || echo /usr/sbin/nginx)}
export TEST_NGINX_RANDOMIZE=1
export LC_ALL=C.UTF-8

# short, for it begins the paths of unix sockets
temp=$(mktemp -d /tmp/skr-XXXXXX)
# some programs of ours run as another user, who must get through
chmod 711 "$temp"
export SECKILL_TMP=$temp TMPDIR=$temp

jobs=2
failed=()
ran=0
began=$SECONDS

# the sanitizer settings of our own programs; nginx gets its preload from t/lib
if [ -e "$build/.sanitize" ]; then
    export ASAN_OPTIONS=fast_unwind_on_malloc=0:detect_leaks=1
    export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    export LSAN_OPTIONS=suppressions=$root/t/lib/lsan.supp:print_suppressions=0
    TEST_NGINX_LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
    export TEST_NGINX_LD_PRELOAD="$TEST_NGINX_LD_PRELOAD $build/nginx_reachable.so"
fi

run() {
    local name=$1
    shift

    ran=$((ran + 1))
    echo "=== $name"
    if ! "$@"; then
        failed+=("$name")
    fi
}

# only programs whose source is still there
run_units() {
    local source program

    for source in t/unit/*.c; do
        program=$build/unit/$(basename "$source" .c)
        if [ -x "$program" ]; then
            run "$source" "$program"
        fi
    done
}

# prove with perl that never sees the sanitizers: perl itself is not ours
run_prove() {
    local name=$1 parallel=$2
    shift 2

    if [ $# -gt 0 ]; then
        run "$name" prove "-j$parallel" "${libs[@]}" "$@"
    fi
}

left_behind() {
    local pid
    local -a children=()

    # the file has no newline at its end, which read calls a failure
    read -ra children < "/proc/$PPID/task/$PPID/children" || true
    for pid in "${children[@]}"; do
        if [ "$pid" != "$$" ]; then
            echo "$pid"
        fi
    done
}

# Waits while something is still ending, then kills it by pid.
check_left_behind() {
    local pid tries=$1
    local -a found=()

    if [ -z "${SECKILL_TINI:-}" ]; then
        echo "not checked: tini is not installed"
        return 0
    fi

    while [ "$tries" -gt 0 ]; do
        mapfile -t found < <(left_behind)
        [ "${#found[@]}" -gt 0 ] || return 0
        sleep 0.2
        tries=$((tries - 1))
    done

    for pid in "${found[@]}"; do
        if [ -r "/proc/$pid/cmdline" ]; then
            echo "left behind: $pid $(tr '\0' ' ' < "/proc/$pid/cmdline")" >&2
            kill -KILL "$pid" 2>/dev/null || true
        fi
    done
    return 1
}

# After Ctrl-C the tests stop their servers by themselves: they get ten seconds.
finish() {
    local code=$?

    trap '' INT TERM HUP
    trap - EXIT
    if [ "$code" -gt 128 ]; then
        check_left_behind 50 || true
    fi
    if [ -z "${SECKILL_KEEP:-}" ]; then
        rm -rf "$temp"
    fi
    exit "$code"
}

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

shopt -s nullglob

# the real Test::Nginx where it is installed, which must then see our other
# libraries but not our runner; else our runner for the same files
libs=(-It/lib)
if perl -MTest::Nginx::Socket -e1 2>/dev/null; then
    rm -rf "$build/t-lib"
    mkdir -p "$build/t-lib"
    ln -s "$root"/t/lib/*.pm "$build/t-lib/"
    libs=("-I$build/t-lib")
fi

if [ $# -gt 0 ]; then
    run_prove "$*" 1 "$@"
else
    run_units
    lua=()
    for file in t/lua/*.t; do
        [ "$file" = t/lua/cost.t ] || lua+=("$file")
    done
    # it measures: nothing beside it
    run_prove "t/lua/cost.t" 1 t/lua/cost.t
    run_prove "t/build t/docs t/packages t/lua t/consumer t/ctl t/e2e t/runner" "$jobs" \
        t/build/*.t t/docs/*.t t/packages/*.t "${lua[@]}" t/consumer/*.t t/ctl/*.t t/e2e/*.t \
        t/runner/*.t
    run_prove "t" "$jobs" t/*.t
    # its faults freeze servers and fill disks, and it judges how long answers take
    run_prove "t/chaos" 1 t/chaos/*.t
    run_prove "t/browser" "$jobs" t/browser/*.t
fi
run "no process left behind" check_left_behind 10

echo "=== $((SECONDS - began)) s, $ran parts, ${#failed[@]} failed"
if [ "${#failed[@]}" -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "all tests passed"
