# shellcheck shell=bash
#
# A sale for one run of the crowd: made, asked once, checked, taken away.  Every
# run has an activity of its own, so that no user is known from another run.
# Sourced by tools/bench/run.sh.

# units that no run can sell
plenty=1000000000

# buyers that are there before a run begins
buyers=10000
late_buyers=1000
first_late_buyer=900000001

activity=1000

# where a path's requests go, and the pool of tokens they come from
url_of() {
    local place=buy

    case $2 in
    accepted_redis) place=session ;;
    repeat)         place=again ;;
    esac
    echo "http://127.0.0.1:${port_of[$1]}/$place/$activity"
}

pool_of() {
    case $1 in
    accepted_redis) echo "$tmp/sessions" ;;
    bad_token)      echo "$tmp/bad" ;;
    *)              echo "$tmp/tokens" ;;
    esac
}

# how many users of the pool come
users_of() {
    case $1 in
    repeat)  echo "$buyers" ;;
    limited) echo 4 ;;
    bad_token) echo "$buyers" ;;
    *)       echo "$pool" ;;
    esac
}

code_of() {
    case $1 in
    accepted | accepted_redis) echo 0 ;;
    sold_out)  echo 40005 ;;
    repeat)    echo 40004 ;;
    limited)   echo 40003 ;;
    bad_token) echo 40100 ;;
    esac
}

# Commands on standard input; an error in any answer ends the bench.
redis_script() {
    redis "$1" > "$tmp/answers"
    if grep -m1 -E '^(ERR|[A-Z]+ [a-z])' "$tmp/answers" >&2; then
        die "redis refused to make a sale"
    fi
}

# open_sale REDIS PATH
open_sale() {
    local tag start_ms stock=$plenty

    activity=$((activity + 1))
    tag={$activity}
    start_ms=$((${EPOCHREALTIME%.*} * 1000 - 60000))
    if [ "$2" = sold_out ]; then
        stock=0
    fi

    {
        echo "HSETNX seckill:control token_key $token_key"
        echo "SADD seckill:activities $activity"
        echo "SET seckill:stock:$tag $stock"
        echo "XGROUP CREATE seckill:orders:$tag seckilld 0 MKSTREAM"
        echo "HSET seckill:activity:$tag product_id 1 price 9.90 stock_limit $plenty" \
             "start_ms $start_ms end_ms $((start_ms + 7200000)) state open max_quantity 1" \
             "eligible 0 epoch 1 rev 1 seq 0"
        echo "HINCRBY seckill:control rev 1"
    } | redis_script "$1"

    case $2 in
    sold_out) seq "$first_late_buyer" $((first_late_buyer + late_buyers - 1)) \
                  | sed "s/^/SADD seckill:order_users:$tag /" | redis_script "$1" ;;
    repeat)   results SET | redis_script "$1" ;;
    esac
}

# results SET|DEL: every buyer, with the order that came of it
results() {
    seq "$buyers" | awk -v verb="$1" -v tag="{$activity}" '{
        key = "seckill:result:" $1 ":" tag
        if (verb == "DEL") {
            print "DEL", key
        } else {
            print "SADD seckill:order_users:" tag, $1
            printf "SET %s \047{\"success\":true,\"order_id\":%d,\"order_no\":\"%s%06d0001\"}\047\n",
                   key, $1, "2611290000000000010000", $1
        }
    }'
}

# close_sale REDIS PATH
close_sale() {
    local tag={$activity}

    {
        echo "SREM seckill:activities $activity"
        echo "DEL seckill:activity:$tag seckill:stock:$tag seckill:order_users:$tag seckill:orders:$tag"
        if [ "$2" = repeat ]; then
            results DEL
        fi
    } | redis_script "$1"
}

# "stock buyers entries"
books() {
    local tag={$activity}

    printf '%s\n' "GET seckill:stock:$tag" "SCARD seckill:order_users:$tag" "XLEN seckill:orders:$tag" \
        | redis "$1" | paste -sd ' '
}

# ask SERVER PATH TOKEN: the body of one answer
ask() {
    curl -s --max-time 5 -X POST -H "Authorization: Bearer $3" "$(url_of "$1" "$2")"
}

# The answer that the path is to measure; some need a moment to settle in memory.
expect() {
    local server=$1 path=$2 token answer try

    case $path in
    accepted | accepted_redis | sold_out) token=$(tail -n 1 "$(pool_of "$path")") ;;
    *) token=$(head -n 1 "$(pool_of "$path")") ;;
    esac
    for ((try = 0; try < 20; try++)); do
        answer=$(ask "$server" "$path" "$token") || true
        if [[ $answer == "{\"code\":$(code_of "$path"),"* ]]; then
            return
        fi
        sleep 0.1
    done
    die "$server answers $path with: $answer"
}

# check_books REDIS PATH REQUESTS CLIENTS: what was sold is what was asked for
check_books() {
    local stock sold entries known=0 least=0 most=0
    local -a now

    read -ra now <<< "$(books "$1")"
    case $2 in
    sold_out) known=$late_buyers; stock=0 ;;
    repeat)   known=$buyers; stock=$plenty ;;
    *)        stock=$plenty ;;
    esac
    sold=$((stock - now[0])) entries=${now[2]}

    case $2 in
    accepted | accepted_redis) least=$3 most=$(($3 + $4 + 1)) ;;
    limited) most=$(users_of limited) ;;
    esac

    if [ "$sold" -ne "$((now[1] - known))" ] || [ "$sold" -ne "$entries" ] \
        || [ "$sold" -lt "$least" ] || [ "$sold" -gt "$most" ]
    then
        die "books of $2 disagree: $3 requests, $sold units sold, $((now[1] - known)) new buyers, $entries entries"
    fi
}
