# shellcheck shell=bash
#
# One run of the crowd against one server, with the accounting around it.
# Sourced by tools/bench/run.sh, which numbers the $group of runs
# made side by side.

# wrk SECONDS CLIENTS SERVER PATH: leaves the line of tools/bench/crowd.lua in $tmp/crowd
send_crowd() {
    timeout $(($1 + 20)) wrk --latency -t 1 -c "$2" -d "${1}s" --timeout 5s -s "$here/crowd.lua" \
        "$(url_of "$3" "$4")" -- "$(pool_of "$4")" "$(users_of "$4")" > "$tmp/wrk.out" 2>&1 \
        || { cat "$tmp/wrk.out" >&2; die "wrk failed"; }
    grep '^crowd ' "$tmp/wrk.out" > "$tmp/crowd" || { cat "$tmp/wrk.out" >&2; die "wrk said nothing"; }
}

# The answers that keep out of a run what it does not measure: the first look of
# a node at each buyer, and the loading of the buyers after a sell-out.
warm_up() {
    local store=$3

    if [ "$store" = none ]; then
        return
    fi
    expect "$1" "$2"
    case $2 in
    sold_out | repeat) send_crowd 1 64 "$1" "$2"; expect "$1" "$2" ;;
    esac
}

# check_answers SERVER PATH ASKED REFUSED FAILED
#
# A crowd on a machine that stalls for 100 ms hears "busy", as it should.  A few
# such answers leave the figures what they are; many do not.
check_answers() {
    if [ "$5" -ne 0 ]; then
        die "$1 $2: $5 requests failed"
    fi
    if [ "$2" = bad_token ]; then
        [ "$4" -eq "$3" ] || die "$1 $2: $(($3 - $4)) bad tokens passed"
    elif [ "$4" -ne 0 ]; then
        say "$1 $2: $4 of $3 requests were told \"busy\""
        tail -n 3 "$tmp/$1/error.log" >&2
        [ $(($4 * 100)) -le "$3" ] || die "too many"
    fi
}

# run_crowd KIND VARIANT SERVER REDIS PATH CLIENTS: adds a line to $tmp/rows
run_crowd() {
    local kind=$1 variant=$2 server=$3 store=$4 path=$5 clients=$6
    local nginx redis=0 machine shell wall asked took p50 p99 refused failed

    if [ "$store" != none ]; then
        open_sale "$store" "$path"
    fi
    warm_up "$server" "$path" "$store"

    nginx=$(cpu_us "$server")
    if [ "$store" != none ]; then
        redis=$(cpu_us "$store")
    fi
    machine=$(machine_us) shell=$(shell_us) wall=$(clock_us)

    send_crowd "$seconds" "$clients" "$server" "$path"

    wall=$(($(clock_us) - wall)) shell=$(($(shell_us) - shell)) machine=$(($(machine_us) - machine))
    nginx=$(($(cpu_us "$server") - nginx))
    if [ "$store" != none ]; then
        redis=$(($(cpu_us "$store") - redis))
    fi

    read -r _ asked took p50 p99 refused failed < "$tmp/crowd"
    check_answers "$server" "$path" "$asked" "$refused" "$failed"

    if [ "$store" != none ]; then
        sleep 0.1                      # what was in flight
        check_books "$store" "$path" "$((asked - refused))" "$((clients + refused))"
        case $path in
        accepted*) ;;
        *) expect "$server" "$path" ;;
        esac
        close_sale "$store" "$path"
    fi

    awk -v kind="$kind $group" -v variant="$variant" -v path="$path" -v clients="$clients" \
        -v asked="$asked" -v took="$took" -v p50="$p50" -v p99="$p99" -v nginx="$nginx" \
        -v redis="$redis" -v other=$((machine - shell - nginx - redis)) -v all=$((wall * cpus)) \
        'BEGIN {
            printf "%s %s %s %d %.0f %.3f %.3f %.2f %.2f %.1f\n", kind, variant, path, clients,
                   asked * 1e6 / took, p50 / 1000, p99 / 1000, nginx / asked, redis / asked,
                   other < 0 ? 0 : 100 * other / all
        }' | tee -a "$tmp/rows" | awk '{
            printf "  %-8s %-15s c=%-4d %7d/s  p50 %7.2f ms  p99 %7.2f ms  nginx %6.2f us  redis %6.2f us  other cpu %4.1f %%\n",
                   $3, $4, $5, $6, $7, $8, $9, $10, $11
        }'
}
