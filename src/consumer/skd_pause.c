/*
 * See the header.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_control.h"
#include "skd_pause.h"

#define SKD_PAUSE_KEYS     5
#define SKD_PAUSE_ARGS     (SKD_PAUSE_KEYS + 3)
#define SKD_PAUSE_ANSWERS  9

/* The arguments of one call. */
typedef struct {
    char         keys[SKD_PAUSE_KEYS][SK_KEY_MAX + 1];
    char         epoch[24];
    char         seq[24];
    const char  *argv[SKD_PAUSE_ARGS];
} skd_pause_call_t;


skd_rc_e
skd_pause_raise(skd_reader_t *reader)
{
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;

    reply = skb_control_raise(reader->redis, reader->config, 0);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


static void
skd_pause_call(skd_pause_call_t *call, const skd_reader_t *reader, uint64_t activity,
    const skd_seen_t *seen)
{
    size_t       len;
    const char  *prefix = reader->config->redis.prefix;

    static const sk_key_e  which[SKD_PAUSE_KEYS] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS, SK_KEY_ELIGIBLE
    };

    memset(call, 0, sizeof(*call));

    for (size_t i = 0; i < SKD_PAUSE_KEYS; i++) {
        len = sk_key(call->keys[i], prefix, strlen(prefix), which[i], activity, 0);
        call->keys[i][len] = '\0';
        call->argv[i] = call->keys[i];
    }

    snprintf(call->epoch, sizeof(call->epoch), "%" PRIu64, seen->epoch);
    snprintf(call->seq, sizeof(call->seq), "%" PRIu64, seen->seq);
    call->argv[SKD_PAUSE_KEYS] = call->epoch;
    call->argv[SKD_PAUSE_KEYS + 1] = call->seq;
    call->argv[SKD_PAUSE_KEYS + 2] = seen->has_orders ? "1" : "0";
}


static uint64_t
skd_pause_number(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer > 0 ? (uint64_t) reply->integer
                                                                    : 0;
}


static int
skd_pause_parse(skd_paused_t *paused, const redisReply *reply)
{
    redisReply **element = reply->element;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != SKD_PAUSE_ANSWERS
        || element[0]->type != REDIS_REPLY_STRING || element[4]->type != REDIS_REPLY_STRING
        || element[5]->type != REDIS_REPLY_STRING || element[8]->type != REDIS_REPLY_INTEGER)
    {
        return -1;
    }

    snprintf(paused->status, sizeof(paused->status), "%s", element[0]->str);
    snprintf(paused->lost, sizeof(paused->lost), "%s", element[4]->str);
    snprintf(paused->state, sizeof(paused->state), "%s", element[5]->str);
    paused->epoch = skd_pause_number(element[1]);
    paused->seq = skd_pause_number(element[3]);
    paused->end_ms = skd_pause_number(element[6]);
    paused->expire_ms = skd_pause_number(element[7]);
    paused->surplus = element[8]->integer;

    return 0;
}


/* Takes the reply. */
static skd_rc_e
skd_pause_reply(skd_reader_t *reader, redisReply *reply, skd_paused_t *paused)
{
    skd_rc_e  rc = SKD_OK;

    if (skb_redis_class(reply) != SKB_REDIS_FINE || skd_pause_parse(paused, reply) != 0) {
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


skd_rc_e
skd_pause(skd_reader_t *reader, uint64_t activity, const skd_seen_t *seen,
    skd_paused_t *paused)
{
    skd_pause_call_t  call;

    memset(paused, 0, sizeof(*paused));
    skd_pause_call(&call, reader, activity, seen);

    return skd_pause_reply(reader, skb_redis_script(reader->redis, SK_SCRIPT_PAUSE,
                                                    SKD_PAUSE_KEYS, SKD_PAUSE_ARGS, call.argv,
                                                    NULL), paused);
}


skd_rc_e
skd_pause_ask(skd_reader_t *reader, uint64_t activity, const skd_seen_t *seen)
{
    const char        *argv[3 + SKD_PAUSE_ARGS];
    skd_pause_call_t   call;

    skd_pause_call(&call, reader, activity, seen);

    argv[0] = "EVALSHA";
    argv[1] = sk_scripts[SK_SCRIPT_PAUSE].sha1;
    argv[2] = "5";
    memcpy(&argv[3], call.argv, sizeof(call.argv));

    return redisAppendCommandArgv(reader->redis, 3 + SKD_PAUSE_ARGS, argv, NULL) == REDIS_OK
           ? SKD_OK : skd_reader_failed(reader, NULL);
}


skd_rc_e
skd_pause_take(skd_reader_t *reader, skd_paused_t *paused)
{
    void  *reply;

    memset(paused, 0, sizeof(*paused));

    if (skb_redis_reply(reader->redis, &reply) != REDIS_OK) {
        return skd_reader_failed(reader, NULL);
    }

    return skd_pause_reply(reader, reply, paused);
}
