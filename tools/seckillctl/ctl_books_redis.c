/*
 * The Redis half of the books.  One script gives the instant; what can only be
 * read in pages is read after it, and held against it.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_books.h"
#include "sk_id.h"
#include "sk_result.h"
#include "skb_redis.h"

#define CTL_PAGE        1000            /* entries or members of one reply */
#define CTL_FIELDS_MAX  128             /* names and values of one entry */


int
ctl_entry_parse(ctl_entry_t *entry, const char *text)
{
    char  *end;

    entry->ms = strtoull(text, &end, 10);

    if (end == text || *end != '-') {
        return -1;
    }

    text = end + 1;
    entry->n = strtoull(text, &end, 10);

    return end != text && *end == '\0' ? 0 : -1;
}


int
ctl_entry_cmp(const ctl_entry_t *a, const ctl_entry_t *b)
{
    if (a->ms != b->ms) {
        return a->ms < b->ms ? -1 : 1;
    }

    return (a->n > b->n) - (a->n < b->n);
}


int
ctl_message_read(const redisReply *fields, sk_message_t *message)
{
    size_t     i, n;
    sk_text_t  text[CTL_FIELDS_MAX];

    n = fields->type == REDIS_REPLY_ARRAY ? fields->elements : 0;
    memset(message, 0, sizeof(*message));

    if (n == 0 || n > CTL_FIELDS_MAX) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        text[i].data = skb_redis_text(fields, i);
        text[i].len = skb_redis_at(fields, i)->len;
    }

    if (sk_message_parse(message, text, n) == NULL) {
        return 2;
    }

    memset(message, 0, sizeof(*message));

    for (i = 0; i + 1 < n; i += 2) {
        if (text[i].len == 4 && memcmp(text[i].data, "user", 4) == 0) {
            return sk_id_parse(text[i + 1].data, text[i + 1].len, &message->user) == 0;
        }
    }

    return 0;
}


/* what is no number in its range is as good as none */
static uint64_t
ctl_books_number(const char *value)
{
    int64_t  n = skb_redis_decimal(value);

    return n > 0 ? (uint64_t) n : 0;
}


static void
ctl_books_fact(ctl_books_t *books, const char *name, const char *value)
{
    size_t  i;

    const struct {
        const char  *name;
        uint64_t    *number;
    } numbers[] = {
        { "stock_limit",  &books->live.stock_limit },
        { "max_quantity", &books->live.max_quantity },
        { "epoch",        &books->live.epoch },
        { "rev",          &books->live.rev },
        { "seq",          &books->live.seq }
    };

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].number = ctl_books_number(value);
            return;
        }
    }

    if (strcmp(name, "product_id") == 0) {
        (void) sk_id_parse(value, strlen(value), &books->live.product_id);

    } else if (strcmp(name, "state") == 0) {
        books->live.exists = 1;
        snprintf(books->live.state, sizeof(books->live.state), "%s", value);

    } else if (strcmp(name, "price") == 0) {
        snprintf(books->live.price, sizeof(books->live.price), "%s", value);

    } else if (strcmp(name, "eligible") == 0) {
        books->live.by_registration = strcmp(value, "1") == 0;

    } else if (strcmp(name, "restocked") == 0) {
        books->restocked = (int64_t) ctl_books_number(value);

    } else if (strcmp(name, "released") == 0) {
        books->released = (int64_t) ctl_books_number(value);

    } else if (strcmp(name, "start_ms") == 0) {
        books->live.start_ms = (int64_t) ctl_books_number(value);

    } else if (strcmp(name, "end_ms") == 0) {
        books->live.end_ms = (int64_t) ctl_books_number(value);
    }
}


int
ctl_books_open(ctl_t *ctl, ctl_books_t *books)
{
    int                rc;
    char               keys[3][SK_KEY_MAX + 1];
    size_t             i;
    redisReply        *reply;
    const redisReply  *facts;

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_key(ctl, keys[0], SK_KEY_ACTIVITY, books->activity, 0);
    ctl_key(ctl, keys[1], SK_KEY_STOCK, books->activity, 0);
    ctl_key(ctl, keys[2], SK_KEY_ORDERS, books->activity, 0);

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_BOOKS, 3,
                        (const char *[]) { keys[0], keys[1], keys[2] }, 0);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 6) {
        rc = ctl_redis_refused(ctl, reply);
        freeReplyObject(reply);
        return rc;
    }

    books->live.activity = books->activity;
    books->live.now_ms = (int64_t) ctl_reply_u64(skb_redis_at(reply, 0));
    facts = skb_redis_at(reply, 1);

    for (i = 0; i + 1 < facts->elements; i += 2) {
        ctl_books_fact(books, skb_redis_text(facts, i), skb_redis_text(facts, i + 1));
    }

    books->live.stock = skb_redis_number(skb_redis_at(reply, 2));
    (void) ctl_entry_parse(&books->last, skb_redis_text(reply, 3));
    (void) ctl_entry_parse(&books->delivered, skb_redis_text(reply, 4));
    freeReplyObject(reply);

    return CTL_FINE;
}


int
ctl_books_members(ctl_t *ctl, ctl_books_t *books)
{
    int            rc;
    char           key[SK_KEY_MAX + 1], cursor[24] = "0";
    size_t         i;
    uint64_t       user;
    redisReply    *reply;
    ctl_person_t  *person;
    const redisReply  *list;

    ctl_key(ctl, key, SK_KEY_BUYERS, books->activity, 0);

    do {
        rc = ctl_redis(ctl, &reply, "SSCAN %s %s COUNT %d", key, cursor, CTL_PAGE);
        if (rc != CTL_FINE) {
            return rc;
        }

        /* a scan that stands still never ends */
        if (skb_redis_part(reply, 0, REDIS_REPLY_STRING) == NULL
            || (strcmp(cursor, "0") != 0 && strcmp(cursor, skb_redis_text(reply, 0)) == 0))
        {
            rc = ctl_redis_refused(ctl, reply);
            freeReplyObject(reply);
            return rc;
        }

        snprintf(cursor, sizeof(cursor), "%s", skb_redis_text(reply, 0));
        list = skb_redis_at(reply, 1);

        for (i = 0; i < list->elements && rc == CTL_FINE; i++) {
            if (sk_id_parse(skb_redis_text(list, i), skb_redis_at(list, i)->len, &user) != 0) {
                ctl_warn("\"%s\" holds \"%.40s\", which is no user", key, skb_redis_text(list, i));
                continue;
            }

            person = ctl_books_person(ctl, books, user);

            if (person) {
                person->flags |= CTL_MEMBER;
            } else {
                rc = CTL_REFUSED;
            }
        }

        freeReplyObject(reply);

    } while (rc == CTL_FINE && strcmp(cursor, "0") != 0);

    return rc;
}


static int
ctl_books_entry(ctl_t *ctl, ctl_books_t *books, const redisReply *entry)
{
    sk_message_t   message;
    ctl_trace_t   *trace;
    ctl_entry_t    id;

    if (entry->elements != 2 || ctl_entry_parse(&id, skb_redis_text(entry, 0)) != 0
        || ctl_entry_cmp(&id, &books->last) > 0)
    {
        return CTL_FINE;
    }

    (void) ctl_message_read(skb_redis_at(entry, 1), &message);

    trace = ctl_books_trace(ctl, books, message.user);
    if (trace == NULL) {
        return CTL_REFUSED;
    }

    trace->entry = id;
    trace->epoch = message.epoch;
    trace->seq = message.seq;
    trace->quantity = message.quantity;
    trace->accepted_ms = message.accepted_ms;
    trace->kind = ctl_entry_cmp(&id, &books->delivered) > 0 ? CTL_UNREAD : CTL_ACKED;
    memcpy(trace->order_no, message.order_no, sizeof(trace->order_no));

    return CTL_FINE;
}


static int
ctl_trace_by_entry(const void *key, const void *trace)
{
    return ctl_entry_cmp(key, &((const ctl_trace_t *) trace)->entry);
}


/* those that some consumer has and did not acknowledge */
static int
ctl_books_pending(ctl_t *ctl, ctl_books_t *books, const char *key)
{
    int           rc;
    char          from[CTL_ENTRY_MAX] = "-";
    size_t        i, n;
    ctl_entry_t   id;
    redisReply   *reply;
    ctl_trace_t  *trace;

    do {
        rc = ctl_redis(ctl, &reply, "XPENDING %s " CTL_GROUP " %s + %d", key, from, CTL_PAGE);
        if (rc != CTL_FINE) {
            return rc;
        }

        n = reply->elements;

        for (i = 0; i < n; i++) {
            if (ctl_entry_parse(&id, skb_redis_text(skb_redis_at(reply, i), 0)) != 0) {
                continue;
            }

            trace = bsearch(&id, books->traces, books->nentries, sizeof(ctl_trace_t),
                            ctl_trace_by_entry);
            if (trace) {
                trace->kind = CTL_PENDING;
            }

            snprintf(from, sizeof(from), "(%s", skb_redis_text(skb_redis_at(reply, i), 0));
        }

        freeReplyObject(reply);

    } while (n == CTL_PAGE && strcmp(from, "(" SKB_REDIS_LAST_ID) != 0);

    return CTL_FINE;
}


int
ctl_books_stream(ctl_t *ctl, ctl_books_t *books)
{
    int          rc;
    char         key[SK_KEY_MAX + 1], from[CTL_ENTRY_MAX] = "-";
    size_t       i, n;
    redisReply  *reply;

    if (books->last.ms == 0 && books->last.n == 0) {
        return CTL_FINE;
    }

    ctl_key(ctl, key, SK_KEY_ORDERS, books->activity, 0);

    do {
        rc = ctl_redis(ctl, &reply, "XRANGE %s %s %" PRIu64 "-%" PRIu64 " COUNT %d", key, from,
                       books->last.ms, books->last.n, CTL_PAGE);
        if (rc != CTL_FINE) {
            return rc;
        }

        n = reply->elements;

        for (i = 0; i < n && rc == CTL_FINE; i++) {
            rc = ctl_books_entry(ctl, books, skb_redis_at(reply, i));
            snprintf(from, sizeof(from), "(%s", skb_redis_text(skb_redis_at(reply, i), 0));
        }

        freeReplyObject(reply);

        if (rc != CTL_FINE) {
            return rc;
        }

    } while (n == CTL_PAGE && strcmp(from, "(" SKB_REDIS_LAST_ID) != 0);

    books->nentries = books->ntraces;

    /* without the group nothing was delivered */
    return books->delivered.ms > 0 ? ctl_books_pending(ctl, books, key) : CTL_FINE;
}


void
ctl_letter_parse(ctl_letter_t *letter, const redisReply *entry)
{
    size_t             i;
    sk_message_t       message;
    const char        *name, *value;
    const redisReply  *fields;

    memset(letter, 0, sizeof(*letter));
    snprintf(letter->id, sizeof(letter->id), "%s", skb_redis_text(entry, 0));
    letter->dead_ms = strtoull(letter->id, NULL, 10);
    fields = skb_redis_at(entry, 1);

    switch (ctl_message_read(fields, &message)) {

    case 2:
        letter->whole = 1;
        letter->epoch = message.epoch;
        letter->seq = message.seq;
        letter->quantity = message.quantity;
        /* fall through */

    case 1:
        letter->has_user = 1;
        letter->user = message.user;
        break;

    default:
        break;
    }

    for (i = 0; i + 1 < fields->elements; i += 2) {
        name = skb_redis_text(fields, i);
        value = skb_redis_text(fields, i + 1);

        if (strcmp(name, "reason") == 0 && letter->reason[0] == '\0') {
            snprintf(letter->reason, sizeof(letter->reason), "%s", value);

        } else if ((strcmp(name, "entry") == 0 || strcmp(name, "id") == 0)
                   && letter->entry.ms == 0)
        {
            (void) ctl_entry_parse(&letter->entry, value);
        }
    }
}


int
ctl_books_letters(ctl_t *ctl, ctl_books_t *books)
{
    int            rc;
    char           key[SK_KEY_MAX + 1], from[CTL_ENTRY_MAX + 1] = "-";
    size_t         i, n;
    void          *room;
    redisReply    *reply;
    ctl_letter_t  *letter;

    ctl_key(ctl, key, SK_KEY_DEAD, books->activity, 0);

    do {
        rc = ctl_redis(ctl, &reply, "XRANGE %s %s + COUNT %d", key, from, CTL_PAGE);
        if (rc != CTL_FINE) {
            return rc;
        }

        n = reply->elements;

        for (i = 0; i < n; i++) {
            room = ctl_books_room(ctl, books->letters, books->nletters, &books->letters_room,
                                  sizeof(ctl_letter_t), CTL_PEOPLE_MAX);
            if (room == NULL) {
                freeReplyObject(reply);
                return CTL_REFUSED;
            }

            books->letters = room;
            letter = &books->letters[books->nletters];
            ctl_letter_parse(letter, skb_redis_at(reply, i));
            snprintf(from, sizeof(from), "(%s", letter->id);

            /*
             * of purchases after the instant nothing else is known either; an older
             * letter may be of an entry of a stream that is gone, with any id
             */
            books->nletters += ctl_entry_cmp(&letter->entry, &books->last) <= 0
                               || books->last.ms == 0
                               || letter->dead_ms < (uint64_t) books->live.now_ms;
        }

        freeReplyObject(reply);

    } while (n == CTL_PAGE && strcmp(from, "(" SKB_REDIS_LAST_ID) != 0);

    return CTL_FINE;
}


static void
ctl_books_result(ctl_person_t *person, const redisReply *reply)
{
    sk_result_t  result;

    person->flags &= ~(uint32_t) (CTL_TOLD_OK | CTL_TOLD_NO | CTL_TOLD_ODD);

    if (reply->type != REDIS_REPLY_STRING) {
        return;
    }

    if (sk_result_parse(&result, reply->str, reply->len) != 0) {
        person->flags |= CTL_TOLD_ODD;

    } else if (result.success) {
        person->flags |= CTL_TOLD_OK;
        memcpy(person->told_no, result.order_no, sizeof(person->told_no));

    } else {
        person->flags |= CTL_TOLD_NO;
    }
}


/* who bought while order_users was read is not in the pages, but there */
static int
ctl_books_again(ctl_t *ctl, ctl_person_t *person)
{
    void        *reply;
    redisReply  *yes;

    if (skb_redis_reply(ctl_redis_context(ctl), &reply) != REDIS_OK) {
        return -1;
    }

    yes = reply;

    if (yes->type == REDIS_REPLY_INTEGER && yes->integer == 1) {
        person->flags |= CTL_MEMBER;
    }

    freeReplyObject(reply);

    return 0;
}


/* a page of people, in one write */
static int
ctl_books_results_page(ctl_t *ctl, ctl_books_t *books, size_t first, size_t last)
{
    int            rc;
    char           key[SK_KEY_MAX + 1], buyers[SK_KEY_MAX + 1];
    void          *reply;
    size_t         i;
    ctl_person_t  *person;
    redisContext  *redis;

    rc = REDIS_OK;
    redis = ctl_redis_context(ctl);
    ctl_key(ctl, buyers, SK_KEY_BUYERS, books->activity, 0);

    for (i = first; i < last && rc == REDIS_OK; i++) {
        person = &books->people.all[i];
        ctl_key(ctl, key, SK_KEY_RESULT, books->activity, person->user);
        rc = redisAppendCommand(redis, "GET %s", key);

        if (!(person->flags & CTL_MEMBER)) {
            rc |= redisAppendCommand(redis, "SISMEMBER %s %" PRIu64, buyers, person->user);
        }
    }

    for (i = first; i < last && rc == REDIS_OK; i++) {
        person = &books->people.all[i];
        rc = skb_redis_reply(redis, &reply);

        if (rc == REDIS_OK) {
            ctl_books_result(person, reply);
            freeReplyObject(reply);

            if (!(person->flags & CTL_MEMBER)) {
                rc = ctl_books_again(ctl, person);
            }
        }
    }

    return rc == REDIS_OK ? CTL_FINE : ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s",
                                                skb_redis_reason(redis, NULL));
}


int
ctl_books_results(ctl_t *ctl, ctl_books_t *books)
{
    int     rc;
    size_t  i, last;

    rc = ctl_open_redis(ctl);

    for (i = 0; i < books->people.n && rc == CTL_FINE; i = last) {
        last = i + CTL_PAGE < books->people.n ? i + CTL_PAGE : books->people.n;
        rc = ctl_books_results_page(ctl, books, i, last);
    }

    return rc;
}
