/*
 * Entries are parsed once; attempts at storing them begin anew each time.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sk_id.h"
#include "skd_batch.h"

#define SKD_FIELDS_MAX  64              /* names and values of one entry */


int
skd_batch_init(skd_batch_t *batch, size_t size)
{
    memset(batch, 0, sizeof(skd_batch_t));

    batch->size = size;
    batch->entries = calloc(size, sizeof(skd_entry_t));
    batch->by_user = calloc(size, sizeof(size_t));
    batch->inserted = calloc(size, sizeof(size_t));

    if (batch->entries == NULL || batch->by_user == NULL || batch->inserted == NULL) {
        skd_batch_done(batch);
        return -1;
    }

    return 0;
}


void
skd_batch_done(skd_batch_t *batch)
{
    if (batch->reply != NULL) {
        freeReplyObject(batch->reply);
    }

    free(batch->entries);
    free(batch->by_user);
    free(batch->inserted);
    memset(batch, 0, sizeof(skd_batch_t));
}


void
skd_entry_fail(skd_entry_t *entry, const char *fault, const char *error)
{
    if (entry->fault == NULL) {
        entry->fault = fault;
        snprintf(entry->last_error, sizeof(entry->last_error), "%s", error);

        if (entry->attempts == 0) {
            snprintf(entry->error, sizeof(entry->error), "%s", error);
        }
    }
}


/* A dead letter goes to its buyer when at least the user can be read. */
static void
skd_entry_find_user(skd_entry_t *entry, const sk_text_t *fields, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        if (fields[i].len == 4 && memcmp(fields[i].data, "user", 4) == 0) {
            entry->has_user = sk_id_parse(fields[i + 1].data, fields[i + 1].len,
                                          &entry->message.user) == 0;
            return;
        }
    }
}


static void
skd_entry_parse(skd_entry_t *entry, uint64_t activity)
{
    size_t             n = 0;
    sk_text_t          fields[SKD_FIELDS_MAX];
    const char        *wrong;
    const redisReply  *reply = entry->fields;

    if (reply == NULL) {
        skd_entry_fail(entry, "deleted", SKD_ENTRY_DELETED);
        return;
    }

    fields[0].data = NULL;
    fields[0].len = 0;

    while (n < reply->elements && n < SKD_FIELDS_MAX) {
        fields[n].data = reply->element[n]->str;
        fields[n].len = reply->element[n]->len;
        n++;
    }

    wrong = n < reply->elements ? "too many fields"
                                : sk_message_parse(&entry->message, fields, n);

    if (wrong == NULL && entry->message.activity != activity) {
        wrong = "the activity is not that of the stream";
    }

    if (wrong != NULL) {
        skd_entry_fail(entry, "malformed", wrong);
        skd_entry_find_user(entry, fields, n);
        return;
    }

    entry->has_user = 1;
    memcpy(entry->number, entry->message.order_no, sizeof(entry->number));
}


/* [id, [name, value, ...]] or, when deleted, [id, nil]. */
static int
skd_entry_fill(skd_entry_t *entry, const redisReply *reply, uint64_t activity)
{
    const redisReply  *fields;

    memset(entry, 0, sizeof(skd_entry_t));

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || reply->element[0]->type != REDIS_REPLY_STRING)
    {
        return -1;
    }

    fields = reply->element[1];

    if (fields->type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i < fields->elements; i++) {
            if (fields->element[i]->type != REDIS_REPLY_STRING) {
                return -1;
            }
        }

        entry->fields = fields;

    } else if (fields->type != REDIS_REPLY_NIL) {
        return -1;
    }

    entry->id = reply->element[0]->str;
    skd_entry_parse(entry, activity);

    return 0;
}


int
skd_batch_fill(skd_batch_t *batch, redisReply *reply, uint64_t activity)
{
    const redisReply  *list;

    if (batch->reply != NULL) {
        freeReplyObject(batch->reply);
    }

    batch->reply = reply;
    batch->count = 0;

    if (reply->type == REDIS_REPLY_NIL) {
        return 0;
    }

    /* [[key, [entry, ...]]] */
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1) {
        return -1;
    }

    list = reply->element[0];

    if (list->type != REDIS_REPLY_ARRAY || list->elements != 2
        || list->element[1]->type != REDIS_REPLY_ARRAY)
    {
        return -1;
    }

    list = list->element[1];

    for (size_t i = 0; i < list->elements && i < batch->size; i++) {
        if (skd_entry_fill(&batch->entries[i], list->element[i], activity) != 0) {
            batch->count = 0;
            return -1;
        }

        batch->count = i + 1;
    }

    return 0;
}


static int
skd_by_user(const void *left, const void *right, void *data)
{
    size_t              a = *(const size_t *) left, b = *(const size_t *) right;
    const skd_entry_t  *entries = data;

    if (entries[a].message.user != entries[b].message.user) {
        return entries[a].message.user < entries[b].message.user ? -1 : 1;
    }

    return a < b ? -1 : a > b;
}


void
skd_range_begin(skd_range_t *range)
{
    size_t        owner = 0;
    skd_batch_t  *batch = range->batch;
    skd_entry_t  *entries = batch->entries;

    batch->users = 0;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entries[i].outcome = SKD_OPEN;
        entries[i].reason = NULL;
        entries[i].owner = i;
        entries[i].taken = 0;
        entries[i].order.exists = 0;
        entries[i].record = SKD_RECORD_NONE;
        entries[i].verdict = SKD_RECORD_NONE;

        if (entries[i].has_user) {
            batch->by_user[batch->users++] = i;
        }
    }

    qsort_r(batch->by_user, batch->users, sizeof(size_t), skd_by_user, entries);

    for (size_t i = 0; i < batch->users; i++) {
        size_t  at = batch->by_user[i];

        if (i == 0 || entries[at].message.user != entries[owner].message.user) {
            owner = at;
        }

        entries[at].owner = owner;
    }
}


skd_entry_t *
skd_range_owner(const skd_range_t *range, uint64_t user)
{
    size_t              low = 0, high = range->batch->users;
    const skd_batch_t  *batch = range->batch;

    while (low < high) {
        size_t  middle = low + (high - low) / 2;

        if (batch->entries[batch->by_user[middle]].message.user < user) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    if (low == batch->users || batch->entries[batch->by_user[low]].message.user != user) {
        return NULL;
    }

    return &batch->entries[batch->by_user[low]];
}


static int
skd_by_seq(const void *left, const void *right, void *data)
{
    const skd_entry_t   *entries = data;
    const sk_message_t  *a = &entries[*(const size_t *) left].message;
    const sk_message_t  *b = &entries[*(const size_t *) right].message;

    if (a->epoch != b->epoch) {
        return a->epoch < b->epoch ? -1 : 1;
    }

    return a->seq < b->seq ? -1 : a->seq > b->seq;
}


void
skd_range_list_inserts(skd_range_t *range)
{
    skd_batch_t  *batch = range->batch;

    batch->inserts = 0;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        if (batch->entries[i].outcome == SKD_INSERT) {
            batch->inserted[batch->inserts++] = i;
        }
    }
}


void
skd_range_sort_inserts(skd_range_t *range)
{
    skd_batch_t  *batch = range->batch;

    skd_range_list_inserts(range);
    qsort_r(batch->inserted, batch->inserts, sizeof(size_t), skd_by_seq, batch->entries);
}
