# shellcheck shell=bash
#
# The demo's sale on the running stack: schema, product, preheat, crowd, checks.
# Sourced by tools/stack.sh; uses what tools/stack/servers.sh started.

users=5000
requests=10000
concurrency=200

# between the rows in MySQL and the start: preheat is refused once it has begun
delay=3

ctl() { "$build/seckillctl" -c "$run/seckilld.conf" "$@" 9>&-; }

# The tables; the daemon wants them when it starts.
load_sale() { ctl schema apply --dir "$root/sql"; }

# Users whom the page can be, beside the crowd of verify.
demo_users() {
    ctl token 10001..10020 --ttl 8h --key-file "$run/auth.key" --json > "$run/users.json"
}

# One product, 100 units, and the wait until the sale has begun.
open_sale() {
    fill demo.sql.in | mysql_client seckill
    ctl preheat 1
    say "waiting for the start of the sale"
    sleep "$delay"
}

# The table goes to the terminal; in the background, so that a signal is heard,
# and ended with this shell.
verify_sale() {
    local code=0

    setpriv --pdeathsig KILL -- "$build/seckillctl" -c "$run/seckilld.conf" \
        verify 1 --url "http://127.0.0.1:$port/api/seckill" --users "$users" \
        --requests "$requests" --concurrency "$concurrency" --key-file "$run/auth.key" 9>&- &
    crowd=$!
    wait "$crowd" || code=$?
    crowd=
    return "$code"
}

how_to_use() {
    local token

    token=$(ctl token 10001 --ttl 8h --key-file "$run/auth.key")

    cat <<END_TEXT

The demo stack runs until "make down".  In a browser:

  http://127.0.0.1:$port/                 buy a unit, as one of twenty users
  http://127.0.0.1:$port/?activity=2      a sale that begins in two minutes
  http://127.0.0.1:$port/live.html        what the operator sees

Or buy by hand:

  curl -X POST -H 'Authorization: Bearer $token' \\
      http://127.0.0.1:$port/api/seckill/1

and ask what became of it:

  curl -H 'Authorization: Bearer $token' \\
      http://127.0.0.1:$port/api/seckill/result/1

Look at it:

  $build/seckillctl -c $run/seckilld.conf status
  tools/stack.sh status
  redis-cli -s $sockets/redis.sock hgetall 'seckill:activity:{1}'
  mariadb --no-defaults -uroot -S $sockets/mysql.sock seckill
  tail -f $run/nginx/error.log $run/seckilld.log

A crowd against it:

  $build/seckillctl -c $run/seckilld.conf verify 1 \\
      --url http://127.0.0.1:$port/api/seckill --users $users \\
      --requests $requests --concurrency $concurrency --key-file $run/auth.key
END_TEXT
}
