#!/usr/bin/env bash
#
# Which sales start soon and are not in Redis, as metrics for node_exporter's
# textfile collector.  nginx cannot tell: to it such a sale is unknown.
#
#   tools/grafana/seckill-due.sh [OUT] [MINUTES]    default: standard output, 10
#
# Environment: SECKILL_CONF  settings of seckillctl, default /etc/seckill/seckilld.conf
#              SECKILL_MYSQL the client with its login, default "mariadb seckill"
#              SECKILLCTL    default seckillctl
#
# Run it every minute.  When a server does not answer nothing is written, and the
# time stamp of the old file grows old: the rule SeckillDueUnknown tells.

set -euo pipefail

out=${1:-/dev/stdout}
minutes=${2:-10}
conf=${SECKILL_CONF:-/etc/seckill/seckilld.conf}
ctl=${SECKILLCTL:-seckillctl}
read -ra mysql <<< "${SECKILL_MYSQL:-mariadb seckill}"

case $minutes in
'' | *[!0-9]*) echo "seckill-due.sh: not a number of minutes: \"$minutes\"" >&2; exit 2 ;;
esac

ids=$("${mysql[@]}" --batch --skip-column-names -e "
    SELECT id FROM seckill_activities
     WHERE start_time BETWEEN UTC_TIMESTAMP()
                          AND UTC_TIMESTAMP() + INTERVAL $minutes MINUTE
       AND status < 2
     ORDER BY id LIMIT 1000")

metrics() {
    local id state rc missing

    echo '# HELP seckill_due_not_preheated 1 when the sale starts soon and is not in Redis.'
    echo '# TYPE seckill_due_not_preheated gauge'

    for id in $ids; do
        rc=0
        state=$("$ctl" -c "$conf" status "$id" --json) || rc=$?
        [ "$rc" -le 1 ] || return 1

        missing=0
        if grep -qE '"phase": ?"not_preheated"' <<< "$state"; then
            missing=1
        fi

        echo "seckill_due_not_preheated{activity=\"$id\"} $missing"
    done

    echo '# HELP seckill_due_timestamp_seconds When this was looked at.'
    echo '# TYPE seckill_due_timestamp_seconds gauge'
    echo "seckill_due_timestamp_seconds $(date +%s)"
}

text=$(metrics)

if [ -e "$out" ] && [ ! -f "$out" ]; then
    printf '%s\n' "$text" > "$out"
else
    printf '%s\n' "$text" > "$out.new"
    mv "$out.new" "$out"
fi
