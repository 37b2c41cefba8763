# shellcheck shell=bash
#
# The private servers of the bench: start, readiness, end.  All live in $tmp, on
# unix sockets and free loopback ports, and die with this shell.  Sourced by
# tools/bench/run.sh, which sets $here, $root, $build and $tmp.

# by name: the process that was started, and nginx' port
declare -A pid_of=() port_of=()

# in the order of their start
servers=()

start_seconds=30
stop_seconds=15

say() { echo "bench: $*" >&2; }

die() { say "$*"; exit 1; }

# A session of its own keeps Ctrl-C from the server: it is stopped in order.
launch() {
    local name=$1 signal=$2
    shift 2

    setsid setpriv --pdeathsig "$signal" -- "$@" < /dev/null >> "$tmp/$name.log" 2>&1 &
    pid_of[$name]=$!
    servers+=("$name")
}

# Waits until "$@" is true or the server is gone.
ready() {
    local name=$1 deadline=$((SECONDS + start_seconds))
    shift

    while [ "$SECONDS" -lt "$deadline" ]; do
        if "$@" > /dev/null 2>&1; then
            return
        fi
        kill -0 "${pid_of[$name]}" 2>/dev/null || break
        sleep 0.05
    done
    tail -n 10 "$tmp/$name.log" "$tmp/$name/error.log" >&2 2>/dev/null
    die "$name did not start"
}

# TERM, then patience, then KILL, with nginx' worker.
stop() {
    local pid=${pid_of[$1]:-} deadline=$((SECONDS + stop_seconds))
    local -a workers=()

    # a bare return gives, in a trap, the status from before the trap
    if [ -z "$pid" ]; then
        return 0
    fi
    unset "pid_of[$1]"

    kill -TERM "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; do
        sleep 0.05
    done
    if kill -0 "$pid" 2>/dev/null; then
        say "$1 ignored TERM for $stop_seconds s and is killed"
        # no newline at the end of the file, which read calls a failure
        read -ra workers < "/proc/$pid/task/$pid/children" || true
        kill -KILL "$pid" "${workers[@]}" 2>/dev/null || true
    fi
    wait "$pid" 2>/dev/null || true
}

# In reverse: who asks before who is asked.
stop_all() {
    local i

    for ((i = ${#servers[@]} - 1; i >= 0; i--)); do
        stop "${servers[i]}"
    done
}

redis() { redis-cli -s "$tmp/$1.sock" "${@:2}"; }

# start_redis NAME [DIRECTIVE VALUE]...
start_redis() {
    local name=$1
    shift

    mkdir "$tmp/$name"
    launch "$name" KILL redis-server --port 0 --unixsocket "$tmp/$name.sock" \
        --unixsocketperm 700 --dir "$tmp/$name" --save "" --daemonize no \
        --loglevel warning --maxmemory-policy noeviction "$@"
    ready "$name" redis "$name" ping
}

free_port() {
    perl -MIO::Socket::INET -e 'my $socket = IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        Proto => "tcp", Listen => 1) or die "no free port: $!\n"; print $socket->sockport'
}

port_answers() { (exec 8<> "/dev/tcp/127.0.0.1/$1"); }

# fill TEMPLATE, from the variables of start_nginx
fill() {
    local text

    text=$(<"$here/conf/$1")
    text=${text//@DIR@/$tmp/$name}
    text=${text//@HERE@/$here}
    text=${text//@KEY@/$tmp/auth.key}
    text=${text//@TOKEN_KEY@/$token_key}
    text=${text//@REDIS@/$tmp/$store.sock}
    text=${text//@PORT@/$port}
    text=${text//@LOAD@/$load}
    text=${text//@USER@/$user}
    text=${text//@BODY@/${body:-}}
    text=${text//@WORKERS@/${worker_count:-1}}
    text=${text//@CONNECTIONS@/${connections:-4096}}
    text=${text//@FILES@/${files:-8192}}
    printf '%s\n' "$text"
}

# start_nginx NAME VARIANT REDIS, with $worker_count workers (1) of $connections (4096)
start_nginx() {
    local name=$1 variant=$2 store=$3 load='' user='' port modules

    modules=$(nginx -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')
    case $variant in
    lua)  load="load_module $modules/ndk_http_module.so; load_module $modules/ngx_http_lua_module.so;" ;;
    ours | scale | waiters) load="load_module $build/ngx_http_seckill_module.so;" ;;
    esac
    if [ "$(id -u)" -eq 0 ]; then
        user="user root;"
    fi

    mkdir "$tmp/$name"
    port=$(free_port)
    port_of[$name]=$port
    fill nginx.conf.in > "$tmp/$name/nginx.conf"
    fill "$variant.conf.in" > "$tmp/$name/server.conf"
    launch "$name" TERM nginx -p "$tmp/$name/" -e "$tmp/$name/error.log" -c "$tmp/$name/nginx.conf"
    ready "$name" port_answers "$port"
}

mysql_client() { mariadb --no-defaults -uroot -S "$tmp/mysql.sock" "$@"; }

# Durable at every commit, as it ships; room for the whole run in memory.
start_mariadb() {
    local -a sizes=(--innodb-buffer-pool-size=512M --innodb-log-file-size=256M) user=()

    if [ "$(id -u)" -eq 0 ]; then
        user=(--user=root)
    fi
    mariadb-install-db --no-defaults "${user[@]}" --datadir="$tmp/mysql" "${sizes[@]}" \
        --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve \
        > "$tmp/mariadb.log" 2>&1 || { grep -i error "$tmp/mariadb.log" >&2; die "mariadb-install-db failed"; }

    launch mariadb KILL mariadbd --no-defaults "${user[@]}" --datadir="$tmp/mysql" "${sizes[@]}" \
        --socket="$tmp/mysql.sock" --pid-file="$tmp/mysql.pid" --skip-networking \
        --skip-name-resolve --skip-log-bin --character-set-server=utf8mb4 \
        --innodb-flush-log-at-trx-commit=1 --max-allowed-packet=64M
    ready mariadb mysql_client -e 'SELECT 1'
    mysql_client -e 'CREATE DATABASE seckill CHARACTER SET utf8mb4'
}

logs_are_quiet() {
    ! grep -sEH '\[(error|alert|crit|emerg)\]|Sanitizer|level=error' "$tmp"/*.log "$tmp"/*/error.log >&2
}
