#!/usr/bin/env bash
#
# Static checks over everything in the tree; any finding fails.
#
#   tools/lint.sh [BUILD]     BUILD holds nginx's generated headers and ours
#
# The check sets live in .clang-tidy, .luacheckrc and here, with the reason for
# each exception.

set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 2

build=${1:-build}
jobs=$(nproc)
failed=()
began=$SECONDS

[ -d "$build/nginx" ] || { echo "lint.sh: $build/nginx is missing: run \"make lint\"" >&2; exit 2; }

shopt -s nullglob

# headers of nginx and of the packages are not ours to judge: -isystem
nginx_includes() {
    local dir

    for dir in core event event/modules event/quic os/unix http http/modules http/v2 http/v3; do
        echo "-isystem$build/nginx-src/src/$dir"
    done
    echo "-isystem$build/nginx"
}

ours=(-std=gnu11 -D_GNU_SOURCE -Isrc -Isrc/shared -Isrc/backend -Isrc/consumer -Isrc/http
      -Isrc/redis -Itools/seckillctl "-isystem$build/gen")
mapfile -t nginx < <(nginx_includes)
read -ra mysql <<< "$(mysql_config --include | sed 's/-I/-isystem/g')"

module_sources=(ngx_*.c src/http/*.c src/redis/*.c)
plain_sources=(src/shared/*.c src/backend/*.c src/consumer/*.c tools/seckillctl/*.c t/unit/*.c)

check() {
    local name=$1 start=$SECONDS
    shift

    if "$@"; then
        echo "ok      $name ($((SECONDS - start)) s)"
    else
        echo "FAILED  $name" >&2
        failed+=("$name")
    fi
}

# Replies of Redis are read with limits: by skb_redis.c and by nobody else.
bounded_replies() {
    ! grep -nE '\bredis(v?Command|CommandArgv|GetReply)\(' src/consumer/*.c src/backend/*.c tools/seckillctl/*.c \
        | grep -v '^src/backend/skb_redis\.c:'
}

# One clang-tidy per file, as many at once as there are cores.
tidy() {
    local -a flags=()

    while [ "$1" != -- ]; do
        flags+=("$1")
        shift
    done
    shift
    if [ $# -eq 0 ]; then
        return
    fi

    # shellcheck disable=SC2016  # the inner shell expands these
    printf '%s\0' "$@" | xargs -0 -P "$jobs" -I{} bash -c '
        output=$(clang-tidy --quiet "$1" -- "${@:2}" 2>&1) && exit 0
        grep -v " warnings\? generated\.$" <<< "$output"
        exit 1' tidy {} "${flags[@]}"
}

# Everything compiles with clang without a warning.
clang_compiles() {
    local -a flags=()

    while [ "$1" != -- ]; do
        flags+=("$1")
        shift
    done
    shift

    printf '%s\0' "$@" | xargs -0 -P "$jobs" -I{} clang -fsyntax-only -Wall -Wextra -Wpointer-arith \
        -Wno-unused-parameter -Werror "${flags[@]}" {}
}

run_cppcheck() {
    # missingIncludeSystem: cppcheck does not read libc.  variableScope: nginx
    # declares at the top.  constParameter: nginx's callbacks fix the types.
    # redundantContinue: an empty loop says so.  unmatchedSuppression: one list
    # for all.
    if [ $# -eq 0 ]; then
        return
    fi
    cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --language=c -j "$jobs" \
        --enable=warning,style,performance,portability \
        --suppress=variableScope --suppress=constParameter --suppress=redundantContinue \
        --suppress=missingIncludeSystem --suppress=unmatchedSuppression \
        -D_GNU_SOURCE -Isrc/shared -Isrc/backend -Isrc/consumer -Isrc/http -Isrc/redis \
        -Itools/seckillctl "-I$build/gen" "$@"
}

# perl -c runs BEGIN blocks, but no END: what they make is made in one folder
perl_syntax() {
    local file output code=0 temp

    temp=$(mktemp -d /tmp/skl-XXXXXX)
    for file in "$@"; do
        if ! output=$(SECKILL_TMP=$temp TMPDIR=$temp perl -wc -It/lib -Itools/chaos "$file" 2>&1); then
            printf '%s\n' "$output"
            code=1
        fi
    done
    rm -rf "$temp"
    return "$code"
}

# the pages are modules, which node knows by the name only: read from stdin
node_check() {
    local file output code=0

    for file in "$@"; do
        if ! output=$(node --input-type=module --check - < "$file" 2>&1); then
            printf '%s: %s\n' "$file" "$output"
            code=1
        fi
    done
    return "$code"
}

check cppcheck run_cppcheck "${module_sources[@]}" "${plain_sources[@]}"
# the module also with what nginx' build asks clang for
check "clang, module" clang_compiles -Wconditional-uninitialized "${ours[@]}" "${nginx[@]}" -- \
    "${module_sources[@]}"
check "clang, plain C" clang_compiles "${ours[@]}" "${mysql[@]}" -- "${plain_sources[@]}"
check "clang-tidy, module" tidy "${ours[@]}" "${nginx[@]}" -- "${module_sources[@]}"
check "clang-tidy, plain C" tidy "${ours[@]}" "${mysql[@]}" -- "${plain_sources[@]}"
check "bounded replies" bounded_replies
check luacheck luacheck --no-color -qq --codes lua tools/bench/peer/admit.lua
check luacheck-peer luacheck --no-color -qq --no-config --std ngx_lua \
    tools/bench/peer/funnel.lua tools/bench/peer/token.lua
check luacheck-crowd luacheck --no-color -qq --no-config --std luajit \
    --globals init request 'done' --read-globals wrk -- tools/bench/crowd.lua tools/bench/scale.lua
check shellcheck shellcheck -x -a tools/*.sh tools/grafana/*.sh tools/completion/*.bash tools/bench/run.sh tools/bench/profile.sh \
    tools/bench/scale.sh tools/bench/waiters.sh .ci/run
mapfile -t perl_files < <(find t tools/chaos tools/bench -name '*.t' -o -name '*.p[lm]')
check "perl -c" perl_syntax "${perl_files[@]}"
if command -v node >/dev/null; then
    mapfile -t scripts < <(find tools/demo/www t/browser -name '*.js' -o -name '*.mjs')
    check "node --check" node_check "${scripts[@]}"
else
    echo "skipped node --check: node is not installed"
fi

echo "lint: $((SECONDS - began)) s, ${#failed[@]} failed"
[ "${#failed[@]}" -eq 0 ]
