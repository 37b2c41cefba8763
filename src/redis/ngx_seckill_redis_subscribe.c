
/*
 * Channels: SUBSCRIBE on a connection that does nothing else, and the messages
 * that come by themselves.  After a loss nothing is subscribed again: whoever
 * listened is told, and starts anew.
 */


#include "ngx_seckill_redis_private.h"


static ngx_int_t ngx_seckill_redis_subscribe_command(ngx_seckill_call_t *call,
    const char *name, ngx_str_t *channel);


static ngx_seckill_message_pt  ngx_seckill_redis_on_message;
static ngx_seckill_silence_pt  ngx_seckill_redis_on_silence;


void
ngx_seckill_redis_listen(ngx_seckill_message_pt message,
    ngx_seckill_silence_pt silence)
{
    ngx_seckill_redis_on_message = message;
    ngx_seckill_redis_on_silence = silence;
}


ngx_int_t
ngx_seckill_redis_subscribe(ngx_seckill_redis_t *redis, ngx_str_t *channel,
    ngx_seckill_call_t *call)
{
    /* an old worker has ended its waits, and must not begin new ones */

    if (redis->closing || ngx_seckill_redis_worker_ends()
        || ngx_seckill_redis_subscribe_command(call, "SUBSCRIBE", channel)
           != NGX_OK)
    {
        ngx_seckill_call_free(call);
        return NGX_BUSY;
    }

    if (redis->subscriber.redis == NULL) {
        redis->subscriber.subscriber = 1;
        ngx_seckill_redis_conn_init(&redis->subscriber, redis);
    }

    if (ngx_seckill_redis_conn_send(&redis->subscriber, call) != NGX_OK) {
        ngx_seckill_call_free(call);
        return NGX_BUSY;
    }

    redis->pending++;

    return NGX_OK;
}


void
ngx_seckill_redis_unsubscribe(ngx_seckill_redis_t *redis, ngx_str_t *channel)
{
    ngx_seckill_call_t  *call;

    if (redis->closing || redis->subscriber.redis == NULL
        || redis->subscriber.state != NGX_SECKILL_CONN_READY)
    {
        return;
    }

    call = ngx_seckill_call_create(NULL, NULL, ngx_current_msec
                                   + redis->settings.connect_timeout);
    if (call == NULL) {
        return;
    }

    if (ngx_seckill_redis_subscribe_command(call, "UNSUBSCRIBE", channel)
            != NGX_OK
        || ngx_seckill_redis_conn_send(&redis->subscriber, call) != NGX_OK)
    {
        ngx_seckill_call_free(call);
        return;
    }

    redis->pending++;
}


static ngx_int_t
ngx_seckill_redis_subscribe_command(ngx_seckill_call_t *call, const char *name,
    ngx_str_t *channel)
{
    size_t       lens[2];
    const char  *argv[2];

    argv[0] = name;
    lens[0] = ngx_strlen(name);
    argv[1] = (char *) channel->data;
    lens[1] = channel->len;

    return ngx_seckill_call_command(call, 2, argv, lens);
}


ngx_int_t
ngx_seckill_redis_message(ngx_seckill_redis_t *redis, redisReply *reply)
{
    ngx_str_t  channel, text;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3
        || reply->element[0]->type != REDIS_REPLY_STRING
        || ngx_strcmp(reply->element[0]->str, "message") != 0
        || reply->element[1]->type != REDIS_REPLY_STRING
        || reply->element[2]->type != REDIS_REPLY_STRING)
    {
        return NGX_DECLINED;
    }

    channel.data = (u_char *) reply->element[1]->str;
    channel.len = reply->element[1]->len;
    text.data = (u_char *) reply->element[2]->str;
    text.len = reply->element[2]->len;

    if (ngx_seckill_redis_on_message) {
        ngx_seckill_redis_on_message(redis, &channel, &text);
    }

    return NGX_OK;
}


void
ngx_seckill_redis_silence(void)
{
    if (ngx_seckill_redis_on_silence) {
        ngx_seckill_redis_on_silence();
    }
}
