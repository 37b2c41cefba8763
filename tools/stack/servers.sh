# shellcheck shell=bash
#
# The four servers of the private stack: how each is started, known to be ready,
# recognised and stopped.  Sourced by tools/stack.sh, which sets $root, $run,
# $build and $lifetime ("ours": they die with this shell; "free": they stay).

# in the order of their start
servers=(redis mariadb seckilld nginx)

start_tries=3
start_seconds=30
stop_seconds=15

say() { echo "stack: $*"; }

die() { echo "stack: $*" >&2; exit 1; }

# A path of a unix socket has room for 107 bytes: a deep checkout keeps its
# sockets in /tmp, under a name made of its path.
sockets_dir() {
    local sum

    if [ $((${#run} + 20)) -lt 100 ]; then
        echo "$run/sockets"
    else
        sum=$(printf '%s' "$run" | cksum)
        echo "/tmp/seckill-$(id -u)-${sum%% *}"
    fi
}

pid_of() { cat "$run/$1.pid" 2>/dev/null || true; }

log_of() {
    case $1 in
    nginx) echo "$run/nginx/error.log" ;;
    *)     echo "$run/$1.log" ;;
    esac
}

# Ours only if its command line names our folder: a pid may be another's by now.
running() {
    local pid

    pid=$(pid_of "$1")
    [ -n "$pid" ] && tr '\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" | grep -F -- "$run/" > /dev/null
}

any_running() {
    local name

    for name in "${servers[@]}"; do
        if running "$name"; then
            return 0
        fi
    done
    return 1
}

# One stack per checkout; the lock ends with this shell and is not inherited.
lock_stack() {
    mkdir -p "$run"
    exec 9> "$run/lock"
    flock -n 9 || die "another tools/stack.sh is at work in $run"
}

# A session of its own keeps Ctrl-C from the server: it is stopped in order.
# exec keeps the pid through setsid and setpriv.  nginx dies by TERM, for it has
# workers to end.
launch() {
    local name=$1 signal=KILL
    local -a guard=()
    shift

    if [ "$name" = nginx ]; then
        signal=TERM
    fi
    if [ "$lifetime" = ours ]; then
        guard=(setpriv --pdeathsig "$signal" --)
    fi

    setsid "${guard[@]}" "$@" < /dev/null >> "$run/$name.log" 2>&1 9>&- &
    echo $! > "$run/$name.pid"
}

# Waits until "$@" is true or the server is gone.
ready() {
    local name=$1 deadline=$((SECONDS + start_seconds))
    shift

    while [ "$SECONDS" -lt "$deadline" ]; do
        if "$@" > /dev/null 2>&1; then
            return 0
        fi
        kill -0 "$(pid_of "$name")" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}

# TERM, then patience, then KILL, with nginx's workers.  A child of this shell
# is collected.
stop() {
    local name=$1 pid deadline=$((SECONDS + stop_seconds))
    local -a workers=()

    if running "$name"; then
        pid=$(pid_of "$name")
        kill -TERM "$pid" 2>/dev/null || true
        while running "$name" && [ "$SECONDS" -lt "$deadline" ]; do
            sleep 0.05
        done
        if running "$name"; then
            echo "stack: $name ignored TERM for $stop_seconds s and is killed" >&2
            # no newline at the end of the file, which read calls a failure
            read -ra workers < "/proc/$pid/task/$pid/children" || true
            kill -KILL "$pid" "${workers[@]}" 2>/dev/null || true
        fi
        wait "$pid" 2>/dev/null || true
    fi
    rm -f "$run/$name.pid"
}

stop_all() {
    local i

    if [ -n "${crowd:-}" ]; then
        kill -TERM "$crowd" 2>/dev/null || true
        wait "$crowd" 2>/dev/null || true
        crowd=
    fi
    for ((i = ${#servers[@]} - 1; i >= 0; i--)); do
        stop "${servers[i]}"
    done
    if [[ $(sockets_dir) == /tmp/* ]]; then
        rm -rf "$(sockets_dir)"
    fi
}

fill() {
    local user=

    if [ "$(id -u)" -eq 0 ]; then
        user="user root;"
    fi
    sed -e "s|@ROOT@|$root|g" -e "s|@RUN@|$run|g" -e "s|@BUILD@|$build|g" -e "s|@SOCKETS@|$sockets|g" \
        -e "s|@PORT@|${port:-}|g" -e "s|@METRICS@|${metrics_port:-}|g" -e "s|@USER@|$user|g" -e "s|@DELAY@|${delay:-}|g" \
        "$root/tools/demo/$1"
}

random_key() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }

# An empty run/ with private files only; MariaDB's data is what takes time.
prepare() {
    sockets=$(sockets_dir)
    rm -rf "$sockets"
    find "$run" -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} +
    chmod 700 "$run"
    umask 077
    mkdir -p "$run/redis" "$run/nginx"
    mkdir -m 700 "$sockets"
    random_key > "$run/auth.key"

    fill redis.conf.in > "$run/redis/redis.conf"
    metrics_port=$(free_port)
    cat > "$run/seckilld.conf" <<END_CONF
[redis]
address = unix:$sockets/redis.sock

[mysql]
socket = $sockets/mysql.sock
user = root
database = seckill

[consumer]
name = demo

[http]
listen = 127.0.0.1:$metrics_port

[log]
level = info
END_CONF
}

mysql_client() { mariadb --no-defaults -uroot -S "$sockets/mysql.sock" "$@"; }

start_redis() {
    launch redis redis-server "$run/redis/redis.conf"
    ready redis redis-cli -s "$sockets/redis.sock" ping || die "redis did not start"
}

start_mariadb() {
    local -a sizes=(--innodb-buffer-pool-size=64M --innodb-log-file-size=16M)
    local -a user=()

    if [ "$(id -u)" -eq 0 ]; then
        user=(--user=root)
    fi
    mariadb-install-db --no-defaults "${user[@]}" --datadir="$run/mysql" "${sizes[@]}" \
        --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve \
        > "$run/mariadb-install.log" 2>&1 9>&- \
        || { cat "$run/mariadb-install.log" >&2; die "mariadb-install-db failed"; }

    launch mariadb mariadbd --no-defaults "${user[@]}" --datadir="$run/mysql" "${sizes[@]}" \
        --socket="$sockets/mysql.sock" --pid-file="$run/mysql/mariadbd.pid" \
        --skip-networking --skip-name-resolve --skip-log-bin --character-set-server=utf8mb4
    ready mariadb mysql_client -e 'SELECT 1' || die "mariadb did not start"
    mysql_client -e 'CREATE DATABASE seckill CHARACTER SET utf8mb4'
}

start_seckilld() {
    launch seckilld "$build/seckilld" -c "$run/seckilld.conf"
    # it works without a word to us: still there a moment later is up
    sleep 0.3
    running seckilld || die "seckilld did not start"
}

free_port() {
    perl -MIO::Socket::INET -e 'my $socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        Proto => "tcp", Listen => 1) or die "no free port: $!\n"; print $socket->sockport'
}

port_answers() { (exec 8<> "/dev/tcp/127.0.0.1/$port"); }

start_nginx() {
    local try

    for ((try = 1; try <= start_tries; try++)); do
        port=${PORT:-$(free_port)}
        fill nginx.conf.in > "$run/nginx/nginx.conf"
        launch nginx nginx -p "$run/nginx/" -e "$run/nginx/error.log" -c "$run/nginx/nginx.conf"
        if ready nginx port_answers && running nginx; then
            echo "$port" > "$run/port"
            return
        fi
        # somebody else was quicker to take the port
        if [ -n "${PORT:-}" ] || ! grep -q 'Address already in use' "$run/nginx/error.log"; then
            break
        fi
        rm -f "$run/nginx/error.log"
    done
    die "nginx did not start"
}

start_all() {
    prepare
    say "starting redis, mariadb, seckilld and nginx in $run"
    start_redis
    start_mariadb
    load_sale
    start_seckilld
    start_nginx
    say "up on http://127.0.0.1:$port/api/seckill/"
}

show_logs() {
    local log

    for log in "$run"/{redis,mariadb,seckilld,nginx}.log "$run/nginx/error.log"; do
        if [ -s "$log" ]; then
            echo "--- end of $log" >&2
            tail -n 15 "$log" >&2
        fi
    done
}

logs_are_quiet() {
    ! grep -EH '\[(alert|crit|emerg)\]|Sanitizer|runtime error:' "$run"/*.log "$run/nginx/error.log" >&2
}
