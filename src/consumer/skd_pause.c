/*
 * See the header.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "skd_pause.h"


skd_rc_e
skd_pause_raise(skd_reader_t *reader)
{
    char         key[SK_KEY_MAX];
    size_t       len;
    skd_rc_e     rc = SKD_OK;
    const char  *prefix = reader->config->redis.prefix;
    redisReply  *reply;

    len = sk_key_global(key, prefix, strlen(prefix), "control", strlen("control"));
    reply = redisCommand(reader->redis, "HINCRBY %b rev 1", key, len);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


skd_rc_e
skd_pause(skd_reader_t *reader, uint64_t activity, uint64_t epoch, uint64_t seq,
    skd_paused_t *paused)
{
    char         key[SK_KEY_MAX + 1], epoch_text[24], seq_text[24];
    skd_rc_e     rc;
    const char  *prefix = reader->config->redis.prefix;
    redisReply  *reply;

    key[sk_key(key, prefix, strlen(prefix), SK_KEY_ACTIVITY, activity, 0)] = '\0';
    snprintf(epoch_text, sizeof(epoch_text), "%" PRIu64, epoch);
    snprintf(seq_text, sizeof(seq_text), "%" PRIu64, seq);

    reply = skb_redis_script(reader->redis, SK_SCRIPT_PAUSE, 1, 3,
                             (const char *[]) { key, epoch_text, seq_text }, NULL);

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->elements != 4
        || reply->element[0]->type != REDIS_REPLY_STRING)
    {
        rc = skd_reader_failed(reader, reply);
        freeReplyObject(reply);

        return rc;
    }

    snprintf(paused->status, sizeof(paused->status), "%s", reply->element[0]->str);
    paused->seq = reply->element[3]->integer;
    freeReplyObject(reply);

    return strcmp(paused->status, "paused") == 0 ? skd_pause_raise(reader) : SKD_OK;
}
