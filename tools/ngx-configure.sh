#!/usr/bin/env bash
#
# Configures nginx's build of the module out of its source tree.
#
#   ngx-configure.sh BUILD SRC FLAGS SANITIZE      configure into BUILD/nginx
#   ngx-configure.sh --flags SRC FLAGS SANITIZE    print what the outcome depends on
#
# SRC empty: the tree of the package nginx-dev with the flags of the packaged
# nginx, so that the module fits the installed binary.  Else any nginx source
# tree; it is not written to.  Afterwards BUILD/nginx-src is the folder in which
# "make -f BUILD/nginx/Makefile modules" runs.

set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd)

fail() { echo "ngx-configure.sh: $*" >&2; exit 1; }

packaged_tree() {
    local flags

    flags=$(dpkg -L nginx-dev 2>/dev/null | grep '/conf_flags$') \
        || fail "the package nginx-dev is missing: run tools/deps.sh build, or give NGINX_SRC"
    dirname "$flags"
}

source_tree() {
    if [ -z "$1" ]; then
        packaged_tree
    else
        [ -f "$1/src/core/nginx.h" ] || fail "\"$1\" is not an nginx source tree"
        (cd "$1" && pwd)
    fi
}

# configure of nginx writes ./Makefile: a tree of links takes it instead
link_tree() {
    local src=$1 copy=$2

    rm -rf "$copy"
    mkdir -p "$copy"
    cp -rs "$src/." "$copy/"
    rm -rf "$copy/Makefile" "$copy/objs" "$copy/.git"
}

print_flags() {
    local src

    src=$(source_tree "$1")
    echo "repo $repo src $src flags $2 sanitize $3 cc ${CC:-cc}"
    cksum < "$src/src/core/nginx.h"
    if [ -z "$1" ]; then
        cksum < "$src/conf_flags"
    fi
}

# distribution hardening, except what a sanitizer does itself
compiler_flags() {
    local fortify='-D_FORTIFY_SOURCE=2'

    if [ -n "$1" ]; then
        echo "-g -O1 -fPIC -fno-omit-frame-pointer" \
             "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
    elif command -v dpkg-buildflags >/dev/null; then
        # shellcheck disable=SC2005  # one line out of two
        echo "$(cd / && dpkg-buildflags --get CFLAGS | sed 's/-ffile-prefix-map=[^ ]*//')" \
             "$(dpkg-buildflags --get CPPFLAGS) -fPIC"
    else
        echo "-g -O2 -fstack-protector-strong $fortify -fPIC"
    fi
}

linker_flags() {
    if [ -n "$1" ]; then
        echo "-fsanitize=address,undefined -fPIC"
    else
        echo "-Wl,-z,relro -Wl,-z,now -fPIC"
    fi
}

configure() {
    local build=$1 tree=$2 flags=$3 sanitize=$4 src script
    local -a args NGX_CONF_FLAGS=()

    src=$(source_tree "$tree")
    mkdir -p "$build"
    build=$(cd "$build" && pwd)
    rm -rf "$build/nginx" "$build/nginx-src"

    if [ -z "$tree" ]; then
        ln -s "$src" "$build/nginx-src"
        # shellcheck source=/dev/null
        . "$src/conf_flags"
        args=("${NGX_CONF_FLAGS[@]}")
    else
        link_tree "$src" "$build/nginx-src"
        read -ra args <<< "$flags"
    fi

    cd "$build/nginx-src"
    # a release has ./configure, the development tree auto/configure
    script=./configure
    [ -f "$script" ] || script=auto/configure

    echo "configuring $src, see $build/nginx-configure.log"
    # the tests of configure leak, and nginx's are not ours to judge
    if ! ASAN_OPTIONS=detect_leaks=0 "$script" "${args[@]}" \
        --with-cc="${CC:-cc}" \
        --with-cc-opt="$(compiler_flags "$sanitize")" \
        --with-ld-opt="$(linker_flags "$sanitize")" \
        --builddir="$build/nginx" \
        --add-dynamic-module="$repo" > "$build/nginx-configure.log" 2>&1
    then
        tail -n 20 "$build/nginx-configure.log" >&2
        fail "configure failed"
    fi
}

if [ $# -ne 4 ]; then
    fail "usage: BUILD|--flags SRC FLAGS SANITIZE"
elif [ "$1" = --flags ]; then
    print_flags "$2" "$3" "$4"
else
    configure "$@"
fi
