#!/usr/bin/env bash
#
# Installs the Debian packages that are missing, says which ones first.
#
#   tools/deps.sh [build] [demo] [test] [lint] [deb] [bench] [browser]
#
# Nothing to install: silent and instant.  The packages bring services (nginx,
# redis); they are kept from starting while this installs, because everything
# here runs servers of its own under run/ or /tmp.

set -euo pipefail

guard=/usr/sbin/policy-rc.d
guard_made=

# nginx-dev wants the exact revision of nginx: one call installs both
packages() {
    case $1 in
    build) echo build-essential nginx nginx-dev libhiredis-dev libyajl-dev libinih-dev \
                default-libmysqlclient-dev libssl-dev libcurl4-openssl-dev \
                libmicrohttpd-dev libsystemd-dev zlib1g-dev ;;
    demo)  echo redis-server mariadb-server-core mariadb-client-core curl util-linux ;;
    test)  echo redis-server mariadb-server-core mariadb-client-core util-linux tini perl \
                binutils gdb faketime libcmocka-dev libredis-perl libdbi-perl libdbd-mysql-perl \
                libtest-base-perl libtext-diff-perl libtest-longstring-perl \
                liblist-moreutils-perl libipc-run-perl libwww-perl liburi-perl \
                libjson-perl openssl strace ;;
    lint)  echo clang cppcheck clang-tidy lua-check shellcheck perl mandoc prometheus systemd ;;
    deb)   echo debhelper dpkg-dev lintian ;;
    bench) echo wrk libnginx-mod-http-lua lua-nginx-redis lua-resty-core lua-resty-lrucache \
                lua-cjson strace linux-perf perl ;;
    # node and npm may be there from elsewhere, and Debian's would not fit them
    browser) echo chromium fonts-wqy-microhei
           command -v node >/dev/null || echo nodejs
           command -v npm >/dev/null || echo npm ;;
    *)     return 1 ;;
    esac
}

missing() {
    local name
    local -A installed=()

    while read -r name; do
        installed[$name]=1
    done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null \
             | sed -n 's/^ii *//p')

    for name in "$@"; do
        if [ -z "${installed[$name]:-}" ]; then
            echo "$name"
        fi
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "deps.sh: neither root nor sudo: please install the packages yourself" >&2
        exit 1
    fi
}

# policy-rc.d is Debian's own switch: 101 means "do not start"
hold_services() {
    if [ ! -e "$guard" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$guard" >/dev/null
        guard_made=1
        as_root chmod 755 "$guard"
    fi
}

release_services() {
    if [ -n "$guard_made" ]; then
        as_root rm -f "$guard"
        guard_made=
    fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" < /dev/null
}

install_missing() {
    local -a names=("$@")

    echo "deps.sh: going to install with apt-get: ${names[*]}"
    echo "deps.sh: services that come with them are not started"

    trap release_services EXIT
    trap 'exit 130' INT TERM HUP
    hold_services

    # no lists, or old ones that name packages which are gone: refresh and try again
    if apt-cache policy "${names[@]}" 2>/dev/null | grep 'Candidate: [^(]' > /dev/null \
        && apt install --no-install-recommends "${names[@]}"
    then
        return
    fi
    apt update
    apt install --no-install-recommends "${names[@]}"
}

main() {
    local group list
    local -a wanted=() todo=()

    if [ $# -eq 0 ]; then
        set -- build demo test lint
    fi
    for group in "$@"; do
        if ! list=$(packages "$group"); then
            echo "deps.sh: \"$group\" is none of build, demo, test, lint, deb, bench, browser" >&2
            exit 2
        fi
        read -ra todo <<< "${list//$'\n'/ }"
        wanted+=("${todo[@]}")
    done

    if ! command -v dpkg-query >/dev/null; then
        echo "deps.sh: not a Debian system: please install the like of ${wanted[*]}" >&2
        exit 1
    fi

    mapfile -t todo < <(missing "${wanted[@]}" | sort -u)
    if [ "${#todo[@]}" -gt 0 ]; then
        # one of the pair missing: name both, apt then finds equal revisions
        if [[ " ${todo[*]} " == *" nginx-dev "* && " ${todo[*]} " != *" nginx "* ]]; then
            todo+=(nginx)
        fi
        install_missing "${todo[@]}"
    fi
}

main "$@"
