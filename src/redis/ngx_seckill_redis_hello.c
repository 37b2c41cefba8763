
/*
 * The handshake of a connection: who we are, which database, and the
 * scripts.
 */


#include "ngx_seckill_redis_private.h"


static ngx_int_t ngx_seckill_redis_conn_hello_commands(
    ngx_seckill_redis_t *redis, ngx_seckill_call_t *call);
static void ngx_seckill_redis_conn_hello_done(ngx_seckill_call_t *call);


/* AUTH, SELECT and the scripts' loads leave in one write, as one call */

ngx_int_t
ngx_seckill_redis_conn_hello(ngx_seckill_redis_conn_t *conn)
{
    ngx_seckill_call_t  *call;

    conn->state = NGX_SECKILL_CONN_HANDSHAKE;

    call = ngx_seckill_call_create(ngx_seckill_redis_conn_hello_done, conn, 0);
    if (call == NULL) {
        return NGX_ERROR;
    }

    call->internal = 1;

    if (ngx_seckill_redis_conn_hello_commands(conn->redis, call) != NGX_OK) {
        ngx_seckill_call_free(call);
        return NGX_ERROR;
    }

    ngx_queue_insert_head(&conn->waiting, &call->queue);

    return ngx_seckill_redis_conn_writev(conn) == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_seckill_redis_conn_hello_commands(ngx_seckill_redis_t *redis,
    ngx_seckill_call_t *call)
{
    u_char       db[NGX_INT_T_LEN];
    size_t       lens[3];
    ngx_uint_t   i, n;
    const char  *argv[3];

    /* what every sale needs; the others are loaded when Redis asks for them */
    static const sk_script_e  scripts[] = {
        SK_SCRIPT_ADMIT, SK_SCRIPT_FACTS, SK_SCRIPT_CONTROL, SK_SCRIPT_BOUGHT
    };

    if (redis->addr.password.len) {
        n = 0;
        argv[n] = "AUTH";
        lens[n++] = sizeof("AUTH") - 1;

        if (redis->addr.user.len) {
            argv[n] = (char *) redis->addr.user.data;
            lens[n++] = redis->addr.user.len;
        }

        argv[n] = (char *) redis->addr.password.data;
        lens[n++] = redis->addr.password.len;

        if (ngx_seckill_call_command(call, n, argv, lens) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (redis->addr.db) {
        argv[0] = "SELECT";
        lens[0] = sizeof("SELECT") - 1;
        argv[1] = (char *) db;
        lens[1] = ngx_sprintf(db, "%ui", redis->addr.db) - db;

        if (ngx_seckill_call_command(call, 2, argv, lens) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    argv[0] = "SCRIPT";
    lens[0] = sizeof("SCRIPT") - 1;
    argv[1] = "LOAD";
    lens[1] = sizeof("LOAD") - 1;

    for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        argv[2] = sk_scripts[scripts[i]].text;
        lens[2] = sk_scripts[scripts[i]].len;

        if (ngx_seckill_call_command(call, 3, argv, lens) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_seckill_redis_conn_hello_done(ngx_seckill_call_t *call)
{
    ngx_seckill_redis_conn_t  *conn;

    conn = call->data;

    if (call->end == NGX_SECKILL_ANSWERED) {
        ngx_seckill_redis_conn_ready(conn);
        return;
    }

    /* closed: fail() has done all; refused: it is told why here */

    if (conn->state == NGX_SECKILL_CONN_HANDSHAKE && call->received) {
        ngx_seckill_redis_conn_fail(conn, call->error);
    }
}
