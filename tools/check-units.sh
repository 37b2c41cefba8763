#!/usr/bin/env bash
#
# Fails on any complaint of systemd about our units, and on an exposure above
# 2.0 of any service.
#
#   tools/check-units.sh [BUILD]     default: build
#
# systemd-analyze exits 0 on settings it does not know and says so on standard
# error, so any output there is a failure.  The units are checked in a temporary
# folder, where the programs are those of BUILD.

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$root" && cd "${1:-build}" && pwd)
threshold=20                            # of systemd-analyze: tenths

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
mkdir "$temp/bin"

for program in seckilld seckillctl; do
    if [ ! -x "$build/$program" ]; then
        echo "check-units.sh: no $build/$program: run make first" >&2
        exit 2
    fi

    ln -s "$build/$program" "$temp/bin/$program"
done

for unit in "$root"/tools/systemd/*.{service,timer}; do
    sed -E "s|^(ExecStart=)/usr/s?bin/(seckill)|\1$temp/bin/\2|" "$unit" \
        > "$temp/$(basename "$unit")"
done

failed=0

for unit in "$temp"/*.{service,timer}; do
    name=$(basename "$unit")

    # other units of the system are not ours to judge
    said=$(SYSTEMD_UNIT_PATH="$temp:" systemd-analyze verify --man=no \
               --recursive-errors=no "$unit" 2>&1) || failed=1

    if [ -n "$said" ]; then
        printf '%s: %s\n' "$name" "$said" >&2
        failed=1
    else
        echo "$name: verified"
    fi
done

for unit in "$temp"/*.service; do
    name=$(basename "$unit")

    if said=$(systemd-analyze security --offline=yes --threshold=$threshold "$unit" 2>&1); then
        echo "$name: $(printf '%s\n' "$said" | sed -n 's/.*Overall exposure level[^:]*: *//p')"
    else
        printf '%s\n' "$said" >&2
        failed=1
    fi
done

exit $failed
