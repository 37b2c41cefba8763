# shellcheck shell=bash
#
# Orders per second into a private MariaDB: seckilld with a full stream before
# it, and what to hold it against: one table filled with statements of 1000 rows
# (the floor), and the usual way, a row lock per order with 8 clients at once.
# And a million of them, to see what stays behind in Redis.
# Sourced by tools/bench/run.sh.

orders=200000
rowlock_clients=8
rowlock_orders=400                     # of each client

# purchases in one call of admit.lua when the stream is filled
fill_batch=250

# a sale of the bench starts so soon after its preheat
orders_delay=2

orders_patience=120

ctl() { "$build/seckillctl" -c "$tmp/seckilld.conf" "$@"; }

orders_ready() {
    start_mariadb
    cat > "$tmp/seckilld.conf" <<END_CONF
[redis]
address = unix:$tmp/stream.sock

[mysql]
socket = $tmp/mysql.sock
user = root
database = seckill

[consumer]
name = bench

[log]
level = warn
END_CONF
    ctl schema apply --dir "$root/sql" > "$tmp/schema.log"
    mysql_client seckill -e "INSERT INTO products (id, name, stock, price)
        VALUES (1, 'bench', 100000000, 9.90); CREATE TABLE bench_orders LIKE seckill_orders"

    # one statement of 1000 rows is one transaction
    awk -v n="$orders" 'BEGIN {
        for (i = 0; i < n; i++) {
            if (i % 1000 == 0) {
                printf "%sINSERT INTO bench_orders (order_no, user_id, product_id, activity_id," \
                       " seckill_price, request_id, epoch, seq) VALUES ", i ? ";\n" : ""
            }
            printf "%s(\"%032d\",%d,1,1,9.90,\"%032x\",1,%d)", i % 1000 ? "," : "", i + 1, i + 1, i + 1, i + 1
        }
        print ";"
    }' > "$tmp/floor.sql"
}

# new_activity: leaves its id in $sale
new_activity() {
    sale=$(mysql_client -N seckill -e "INSERT INTO seckill_activities
        (product_id, seckill_price, stock_limit, start_time, end_time)
        VALUES (1, 9.90, $orders, UTC_TIMESTAMP() + INTERVAL $orders_delay SECOND,
                UTC_TIMESTAMP() + INTERVAL 1 HOUR);
        SELECT LAST_INSERT_ID()")
}

# What the crowd would leave in Redis, made by the script that serves the crowd.
fill_stream() {
    local tag={$sale} sha

    sha=$(redis stream -x SCRIPT LOAD < "$root/lua/admit.lua")
    seq "$orders" | awk -v orders="$orders" -v batch="$fill_batch" -v sha="$sha" -v tag="$tag" -v sale="$sale" '{
        if (NR % batch == 1) {
            printf "%sEVALSHA %s 5 seckill:activity:%s seckill:stock:%s seckill:order_users:%s" \
                   " seckill:orders:%s seckill:eligible:%s %s %d 0 0",
                   (NR > 1 ? "\n" : ""), sha, tag, tag, tag, tag, tag, sale,
                   (orders - NR + 1 < batch ? orders - NR + 1 : batch)
        }
        printf " %d 1 %032x \"\"", $1, $1
    }
    END { print "" }' | redis stream > "$tmp/answers"

    # not its length: a daemon that runs already may have deleted the first
    if [ "$(redis stream XINFO STREAM "seckill:orders:$tag" | sed -n '/^entries-added$/{n;p}')" -ne "$orders" ]; then
        tail -n 3 "$tmp/answers" >&2
        die "the stream was not filled"
    fi
}

# everything read and acknowledged
stream_is_done() {
    redis stream XINFO GROUPS "seckill:orders:{$sale}" \
        | awk '{ if (name == "lag") lag = $1; if (name == "pending") pending = $1; name = $1 }
               END { exit !(lag == "0" && pending == "0") }'
}

# orders_row WHO ORDERS MICROSECONDS DAEMON_US MARIADB_US REDIS_US
orders_row() {
    awk -v who="$group $1" -v n="$2" -v took="$3" -v daemon="$4" -v db="$5" -v redis="$6" 'BEGIN {
        printf "orders %s %.0f %.2f %.2f %.2f\n", who, n * 1e6 / took, daemon / n, db / n, redis / n
    }' | tee -a "$tmp/rows" | awk '{
        printf "  %-8s %-15s        %7d/s  daemon %6.2f us  mariadb %6.2f us  redis %6.2f us\n",
               $3, "orders", $4, $5, $6, $7
    }'
}

run_floor() {
    local wall db

    mysql_client seckill -e 'TRUNCATE bench_orders'
    db=$(cpu_us mariadb) wall=$(clock_us)
    mysql_client seckill < "$tmp/floor.sql"
    wall=$(($(clock_us) - wall)) db=$(($(cpu_us mariadb) - db))
    orders_row floor "$orders" "$wall" 0 "$db" 0
}

run_rowlock() {
    local sale client wall db pid
    local -a clients=()

    new_activity
    for ((client = 0; client < rowlock_clients; client++)); do
        awk -v n="$rowlock_orders" -v base="$((client * rowlock_orders))" -v sale="$sale" 'BEGIN {
            for (i = base + 1; i <= base + n; i++) {
                print "BEGIN;"
                print "SELECT sold INTO @sold FROM seckill_activities WHERE id = " sale " FOR UPDATE;"
                printf "INSERT INTO seckill_orders (order_no, user_id, product_id, activity_id," \
                       " seckill_price, epoch, seq) VALUES (\"%d-%d\",%d,1,%d,9.90,1,%d);\n", sale, i, i, sale, i
                printf "INSERT INTO seckill_records (user_id, activity_id, status) VALUES (%d,%d,1);\n", i, sale
                print "UPDATE seckill_activities SET sold = @sold + 1 WHERE id = " sale ";"
                print "COMMIT;"
            }
        }' > "$tmp/rowlock.$client.sql"
    done

    db=$(cpu_us mariadb) wall=$(clock_us)
    for ((client = 0; client < rowlock_clients; client++)); do
        mysql_client seckill < "$tmp/rowlock.$client.sql" &
        clients+=("$!")
    done
    for pid in "${clients[@]}"; do
        wait "$pid" || die "an order of the row lock failed"
    done
    wall=$(($(clock_us) - wall)) db=$(($(cpu_us mariadb) - db))

    if [ "$(mysql_client -N seckill -e "SELECT sold FROM seckill_activities WHERE id = $sale")" \
         -ne $((rowlock_clients * rowlock_orders)) ]
    then
        die "the row lock lost orders"
    fi
    orders_row rowlock $((rowlock_clients * rowlock_orders)) "$wall" 0 "$db" 0
}

run_seckilld() {
    local sale wall db redis daemon deadline

    new_activity
    ctl preheat "$sale" > "$tmp/preheat.log"
    sleep "$orders_delay"
    fill_stream

    db=$(cpu_us mariadb) redis=$(cpu_us stream) wall=$(clock_us) deadline=$((SECONDS + orders_patience))
    launch seckilld KILL "$build/seckilld" -c "$tmp/seckilld.conf"
    until stream_is_done; do
        if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "${pid_of[seckilld]}" 2>/dev/null; then
            tail "$tmp/seckilld.log" >&2
            die "seckilld did not finish"
        fi
        sleep 0.1
    done
    wall=$(($(clock_us) - wall)) db=$(($(cpu_us mariadb) - db)) daemon=$(cpu_us seckilld)
    redis=$(($(cpu_us stream) - redis))
    stop seckilld

    if [ "$(mysql_client -N seckill -e "SELECT COUNT(*) FROM seckill_orders WHERE activity_id = $sale")" \
         -ne "$orders" ]
    then
        die "seckilld lost orders"
    fi
    orders_row ours "$orders" "$wall" "$daemon" "$db" "$redis"
    redis stream FLUSHALL > "$tmp/answers"
}

bench_orders() {
    local round

    say "orders: $orders purchases in the stream, MariaDB durable at every commit"
    start_redis stream
    orders_ready
    for ((round = 1; round <= rounds; round++)); do
        group=$((group + 1))
        run_floor
        run_rowlock
        run_seckilld
    done
    stop mariadb
    stop stream
    rm -rf "$tmp/mysql"
}

used_memory() { redis stream INFO memory | tr -d '\r' | sed -n "s/^used_memory://p"; }

million_row() { printf '  %-46s %12s   %s\n' "$1" "$2" "${3:-}"; }

# What a key takes, to the last element.
key_bytes() { redis stream MEMORY USAGE "$1" SAMPLES 0; }

# Redis' own tables shrink a little later than what is in them
memory_settles() {
    local i now last=0

    for ((i = 0; i < 30; i++)); do
        now=$(used_memory)
        [ "$now" -ne "$last" ] || break
        last=$now
        sleep 0.5
    done
    echo "$now"
}

# The stream is trimmed every five seconds, and by whole nodes of a hundred.
stream_is_short() { [ "$(redis stream XLEN "seckill:orders:{$sale}")" -lt 100 ]; }

# Case: the stream and its list of pending entries may not grow with the sale.
bench_million() {
    local sale base wall longest=0 length full after deadline

    orders=${BENCH_MILLION:-1000000}
    say "million: $orders purchases while seckilld works, entries kept for a second"
    start_redis stream
    orders_ready
    sed -i 's/^\[consumer\]/[consumer]\nretain = 1s\npay_timeout = 0s/' "$tmp/seckilld.conf"
    base=$(memory_settles)
    new_activity
    ctl preheat "$sale" > "$tmp/preheat.log"
    sleep "$orders_delay"

    launch seckilld KILL "$build/seckilld" -c "$tmp/seckilld.conf"
    wall=$(clock_us) deadline=$((SECONDS + limit))
    fill_stream &
    until stream_is_done && ! kill -0 "$!" 2>/dev/null; do
        [ "$SECONDS" -lt "$deadline" ] || die "seckilld did not finish"
        length=$(redis stream XLEN "seckill:orders:{$sale}")
        longest=$((length > longest ? length : longest))
        sleep 0.2
    done
    wait "$!" || die "the stream was not filled"
    wall=$(($(clock_us) - wall))
    until stream_is_short; do
        [ "$SECONDS" -lt "$deadline" ] || die "the stream stays long"
        sleep 0.2
    done
    full=$(memory_settles)

    million_row "orders per second, the selling included" "$((orders * 1000000 / wall))"
    million_row "entries in the stream, at most" "$longest"
    million_row "    at the end" "$(redis stream XLEN "seckill:orders:{$sale}")" "bytes $(key_bytes "seckill:orders:{$sale}")"
    million_row "    pending" "$(redis stream XPENDING "seckill:orders:{$sale}" seckilld | head -n 1)"
    million_row "used_memory before" "$base"
    million_row "used_memory at the end" "$full"
    million_row "    of it buyers" "$(key_bytes "seckill:order_users:{$sale}")"
    million_row "    of it results, each" "$(key_bytes "seckill:result:1:{$sale}")" "$(redis stream DBSIZE) keys in all"

    if [ "$(mysql_client -N seckill -e "SELECT COUNT(*) FROM seckill_orders WHERE activity_id = $sale")" -ne "$orders" ]; then
        die "seckilld lost orders"
    fi
    stop seckilld

    # what goes when the sale is settled
    redis stream --scan --pattern "seckill:*:{$sale}" | grep -v ':orders:' \
        | xargs -n 1000 redis-cli -s "$tmp/stream.sock" DEL > "$tmp/answers"
    after=$(memory_settles)
    million_row "used_memory when buyers and results are gone" "$after" "$((after - base)) more than before"
    stop mariadb
    stop stream
    rm -rf "$tmp/mysql"
}
