/*
 * queue: what is on its way from Redis to MySQL.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_books.h"
#include "ctl_json.h"
#include "ctl_text.h"
#include "sk_id.h"

#define CTL_PAGE  1000

typedef struct {
    uint64_t      activity;
    char          key[SK_KEY_MAX + 1];
    ctl_books_t   books;                /* the instant alone */
    ctl_live_t    live;
    int64_t       length;
    int64_t       unread;
    int64_t       pending;
    int64_t       oldest_ms;            /* age of the oldest unhandled entry, -1: none */
    redisReply   *consumers;            /* of XINFO CONSUMERS; NULL without a group */
} ctl_queue_t;


/* A field of one of XINFO's flat lists, or NULL. */
static const redisReply *
ctl_queue_field(const redisReply *list, const char *name)
{
    size_t  i;

    for (i = 0; i + 1 < list->elements; i += 2) {
        if (strcmp(skb_redis_text(list, i), name) == 0) {
            return skb_redis_at(list, i + 1);
        }
    }

    return NULL;
}


/* entries behind the last delivered one, counted: Redis' own lag may not be known */
static int
ctl_queue_unread(ctl_t *ctl, ctl_queue_t *queue, ctl_entry_t *first)
{
    int          rc;
    char         from[CTL_ENTRY_MAX + 1];
    size_t       n;
    redisReply  *reply;

    snprintf(from, sizeof(from), "(%" PRIu64 "-%" PRIu64, queue->books.delivered.ms,
             queue->books.delivered.n);

    do {
        if (strcmp(from, "(" SKB_REDIS_LAST_ID) == 0) {
            break;
        }

        rc = ctl_redis(ctl, &reply, "XRANGE %s %s + COUNT %d", queue->key, from, CTL_PAGE);
        if (rc != CTL_FINE) {
            return rc;
        }

        n = reply->elements;

        if (n > 0) {
            if (queue->unread == 0) {
                (void) ctl_entry_parse(first, skb_redis_text(skb_redis_at(reply, 0), 0));
            }

            snprintf(from, sizeof(from), "(%s", skb_redis_text(skb_redis_at(reply, n - 1), 0));
        }

        queue->unread += (int64_t) n;
        freeReplyObject(reply);

    } while (n == CTL_PAGE);

    return CTL_FINE;
}


static int
ctl_queue_group(ctl_t *ctl, ctl_queue_t *queue, ctl_entry_t *first)
{
    int          rc;
    ctl_entry_t  pending;
    redisReply  *reply;

    rc = ctl_redis_try(ctl, &reply, "XPENDING %s " CTL_GROUP, queue->key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 4) {
        queue->pending = skb_redis_at(reply, 0)->integer;

        if (queue->pending > 0 && ctl_entry_parse(&pending, skb_redis_text(reply, 1)) == 0
            && (first->ms == 0 || ctl_entry_cmp(&pending, first) < 0))
        {
            *first = pending;
        }
    }

    freeReplyObject(reply);

    rc = ctl_redis_try(ctl, &reply, "XINFO CONSUMERS %s " CTL_GROUP, queue->key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_ARRAY) {
        queue->consumers = reply;
    } else {
        freeReplyObject(reply);
    }

    return CTL_FINE;
}


static int
ctl_queue_read(ctl_t *ctl, ctl_queue_t *queue)
{
    int          rc;
    ctl_entry_t  first;

    memset(&first, 0, sizeof(first));
    queue->books.activity = queue->activity;
    queue->oldest_ms = -1;

    if ((rc = ctl_books_open(ctl, &queue->books)) != CTL_FINE
        || (rc = ctl_live_read(ctl, queue->activity, &queue->live)) != CTL_FINE)
    {
        return rc;
    }

    ctl_key(ctl, queue->key, SK_KEY_ORDERS, queue->activity, 0);
    queue->length = queue->live.stream;

    if (queue->books.last.ms == 0 && queue->live.stream <= 0) {
        return queue->live.exists ? CTL_FINE
                                  : ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " has no stream",
                                             queue->activity);
    }

    if ((rc = ctl_queue_unread(ctl, queue, &first)) != CTL_FINE
        || (rc = ctl_queue_group(ctl, queue, &first)) != CTL_FINE)
    {
        return rc;
    }

    if (first.ms > 0) {
        queue->oldest_ms = queue->books.live.now_ms - (int64_t) first.ms;
        queue->oldest_ms = queue->oldest_ms < 0 ? 0 : queue->oldest_ms;
    }

    return CTL_FINE;
}


static void
ctl_queue_print(const ctl_queue_t *queue)
{
    size_t             i;
    const redisReply  *one, *name, *pending, *idle;

    printf("activity %" PRIu64 ": %s\n", queue->activity, ctl_shown(ctl_live_phase(&queue->live)));
    printf("  stream   %" PRId64 " entries, last %" PRIu64 "-%" PRIu64 "\n", queue->length,
           queue->books.last.ms, queue->books.last.n);
    printf("  unread   %" PRId64 "\n", queue->unread);
    printf("  pending  %" PRId64 "\n", queue->pending);
    printf("  dead     %" PRId64 "\n", queue->live.dead);

    if (queue->oldest_ms >= 0) {
        printf("  oldest   %" PRId64 " ms old\n", queue->oldest_ms);
    }

    if (queue->consumers == NULL) {
        puts("  there is no consumer group");
        return;
    }

    for (i = 0; i < queue->consumers->elements; i++) {
        one = skb_redis_at(queue->consumers, i);
        name = ctl_queue_field(one, "name");
        pending = ctl_queue_field(one, "pending");
        idle = ctl_queue_field(one, "idle");

        printf("  %s: %lld pending, idle for %lld ms\n", name ? ctl_shown(name->str) : "?",
               pending ? pending->integer : 0, idle ? idle->integer : 0);
    }
}


static int
ctl_queue_json(ctl_t *ctl, const ctl_queue_t *queue)
{
    size_t             i;
    ctl_json_t         json;
    const redisReply  *one, *name, *pending, *idle;

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);
    ctl_json_id(&json, "activity", queue->activity);
    ctl_json_text(&json, "phase", ctl_live_phase(&queue->live));
    ctl_json_known(&json, "stream", queue->length);
    ctl_json_count(&json, "unread", (uint64_t) queue->unread);
    ctl_json_count(&json, "pending", (uint64_t) queue->pending);
    ctl_json_known(&json, "dead", queue->live.dead);
    ctl_json_known(&json, "oldest_ms", queue->oldest_ms);
    ctl_json_bool(&json, "group", queue->consumers != NULL);
    ctl_json_array(&json, "consumers");

    for (i = 0; queue->consumers && i < queue->consumers->elements; i++) {
        one = skb_redis_at(queue->consumers, i);
        name = ctl_queue_field(one, "name");
        pending = ctl_queue_field(one, "pending");
        idle = ctl_queue_field(one, "idle");

        ctl_json_map(&json, NULL);
        ctl_json_text(&json, "name", name ? name->str : NULL);
        ctl_json_known(&json, "pending", pending ? pending->integer : -1);
        ctl_json_known(&json, "idle_ms", idle ? idle->integer : -1);
        ctl_json_map_end(&json);
    }

    ctl_json_array_end(&json);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


static int
ctl_queue_run(ctl_t *ctl, int argc, char **argv)
{
    int          opt, rc;
    ctl_queue_t  queue;

    static const struct option  options[] = { CTL_OPTIONS };

    opt = ctl_getopt(ctl, argc, argv, options);

    if (opt != -1) {
        return ctl->exit;
    }

    memset(&queue, 0, sizeof(queue));

    if (argc - optind != 1) {
        return ctl_usage(ctl, "one activity is wanted");
    }

    if (sk_id_parse(argv[optind], strlen(argv[optind]), &queue.activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    rc = ctl_queue_read(ctl, &queue);

    if (rc == CTL_FINE && ctl->json) {
        rc = ctl_queue_json(ctl, &queue);

    } else if (rc == CTL_FINE) {
        ctl_queue_print(&queue);
    }

    if (queue.consumers) {
        freeReplyObject(queue.consumers);
    }

    ctl_books_free(&queue.books);

    return rc;
}


const ctl_verb_t  ctl_queue_verb = {
    "queue",
    "ID",
    "show what is on its way from Redis to MySQL",
    "Shows the stream, what is unread and pending, the age of the oldest purchase that\n"
    "waits, and the consumers of the group.\n"
    "\n",
    ctl_queue_run
};
