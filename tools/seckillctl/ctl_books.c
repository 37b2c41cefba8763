/*
 * Joining what was read, and the sums.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_books.h"


void *
ctl_books_room(ctl_t *ctl, void *array, size_t n, size_t *room, size_t size, size_t max)
{
    void    *grown;
    size_t   more;

    if (n < *room) {
        return array;
    }

    more = *room ? *room * 2 : 256;
    grown = n < max ? realloc(array, more * size) : NULL;

    if (grown == NULL) {
        ctl_fail(ctl, CTL_REFUSED, "the books are too large: more than %zu lines", n);
        return NULL;
    }

    *room = more;

    return grown;
}


ctl_person_t *
ctl_books_person(ctl_t *ctl, ctl_books_t *books, uint64_t user)
{
    ctl_person_t  *person;

    person = ctl_person(&books->people, user, 1);

    if (person == NULL) {
        ctl_fail(ctl, CTL_REFUSED, "the books are too large: more than %zu users",
                 books->people.n);
    }

    return person;
}


/* user 0: the purchase names none */
ctl_trace_t *
ctl_books_trace(ctl_t *ctl, ctl_books_t *books, uint64_t user)
{
    void          *room;
    ctl_trace_t   *trace;
    ctl_person_t  *person;

    room = ctl_books_room(ctl, books->traces, books->ntraces, &books->traces_room,
                          sizeof(ctl_trace_t), CTL_TRACES_MAX);
    if (room == NULL) {
        return NULL;
    }

    books->traces = room;
    trace = &books->traces[books->ntraces];
    memset(trace, 0, sizeof(*trace));
    trace->user = user;

    if (user) {
        person = ctl_books_person(ctl, books, user);
        if (person == NULL) {
            return NULL;
        }

        trace->next = person->trace;
        person->trace = (uint32_t) books->ntraces + 1;
    }

    books->ntraces++;

    return trace;
}


/* how far the sale has come meanwhile: what MySQL knows beyond that, Redis forgot */
static int
ctl_books_after(ctl_t *ctl, ctl_books_t *books)
{
    int          rc;
    char         key[SK_KEY_MAX + 1], why[CTL_WHOLE_MAX];
    redisReply  *reply;

    ctl_key(ctl, key, SK_KEY_ACTIVITY, books->activity, 0);

    rc = ctl_redis(ctl, &reply, "HGET %s seq", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    books->seq_after = ctl_reply_u64(reply);
    freeReplyObject(reply);

    /* the keys of a settled sale expire */
    return strcmp(books->live.state, "settled") == 0 ? CTL_FINE
           : ctl_whole_read(ctl, books->activity, books->whole, why);
}


int
ctl_books_read(ctl_t *ctl, ctl_books_t *books, uint64_t activity)
{
    int  rc;

    books->activity = activity;

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE
        || (rc = ctl_books_members(ctl, books)) != CTL_FINE
        || (rc = ctl_books_open(ctl, books)) != CTL_FINE
        || (rc = ctl_books_stream(ctl, books)) != CTL_FINE
        || (rc = ctl_books_letters(ctl, books)) != CTL_FINE)
    {
        return rc;
    }

    if ((rc = ctl_books_mysql(ctl, books)) == CTL_FINE) {
        rc = ctl_promise_read(ctl, &books->live, &books->row, &books->promise);
    }

    return rc == CTL_FINE && books->live.exists ? ctl_books_after(ctl, books) : rc;
}


int
ctl_books_behind(const ctl_books_t *books)
{
    return books->live.exists
           && (books->live.epoch < books->row.epoch
               || (books->live.epoch == books->row.epoch
                   && (books->seq_after < books->row.seq_seen
                       || books->seq_after < books->seq_ordered)));
}


void
ctl_books_free(ctl_books_t *books)
{
    size_t  i;

    for (i = 0; i < books->ntraces; i++) {
        free(books->traces[i].words);
    }

    ctl_people_free(&books->people);
    free(books->olds);
    free(books->traces);
    free(books->letters);
    free(books->extras);
    memset(books, 0, sizeof(*books));
}


/* this purchase is the user's order, or the one that was released */
static int
ctl_books_same(const ctl_person_t *person, uint64_t epoch, uint64_t seq)
{
    return person->epoch == epoch && person->seq == seq;
}


static void
ctl_books_judge_letter(ctl_books_t *books, ctl_letter_t *letter)
{
    ctl_person_t  *person;

    if (!letter->has_user) {
        return;
    }

    person = ctl_person(&books->people, letter->user, 0);

    if (letter->whole && ctl_books_extra(books, letter->epoch, letter->seq)) {
        letter->closed = 1;

    } else if (person && (person->flags & CTL_ORDERED)) {
        letter->closed = ctl_books_same(person, letter->epoch, letter->seq);

    } else if (person && (person->flags & CTL_RELEASED)) {
        letter->closed = !letter->whole || person->epoch == 0
                         || ctl_books_same(person, letter->epoch, letter->seq);
    }

    if (letter->closed) {
        return;
    }

    books->dead += letter->quantity;

    if (person) {
        person->flags |= CTL_LETTER;
    }
}


static int
ctl_letter_by_entry(const void *a, const void *b)
{
    return ctl_entry_cmp(&((const ctl_letter_t *) a)->entry,
                         &((const ctl_letter_t *) b)->entry);
}


/* the entry has become a dead letter, or an order, or is booked as a second one */
static int
ctl_books_stored(const ctl_books_t *books, const ctl_trace_t *trace,
    const ctl_person_t *person)
{
    ctl_letter_t  key;

    if (trace->epoch != 0
        && (ctl_books_extra(books, trace->epoch, trace->seq)
            || ((person->flags & (CTL_ORDERED | CTL_RELEASED))
                && ctl_books_same(person, trace->epoch, trace->seq))))
    {
        return 1;
    }

    memset(&key, 0, sizeof(key));
    key.entry = trace->entry;

    return books->nletters > 0
           && bsearch(&key, books->letters, books->nletters, sizeof(key), ctl_letter_by_entry)
              != NULL;
}


static void
ctl_books_judge_trace(ctl_books_t *books, ctl_trace_t *trace)
{
    int            stored;
    ctl_person_t  *person;

    person = trace->user ? ctl_person(&books->people, trace->user, 0) : NULL;
    stored = person && ctl_books_stored(books, trace, person);

    if (person && (person->flags & CTL_ORDERED) && trace->epoch != 0
        && ctl_books_same(person, trace->epoch, trace->seq) && trace->quantity != person->units)
    {
        person->flags |= CTL_UNITS_ODD;
    }

    if (trace->kind == CTL_JOURNAL || trace->kind == CTL_MAYBE) {
        return;
    }

    if (trace->kind == CTL_ACKED) {
        /* a moment ago: the daemon may be between two steps */
        if (person && !stored
            && trace->entry.ms + books->grace_ms > (uint64_t) books->live.now_ms)
        {
            person->flags |= CTL_FLIGHT;
            books->pending += trace->quantity;
        }

        return;
    }

    if (person) {
        person->flags |= CTL_UNACKED;
    }

    if (stored) {
        return;
    }

    if (trace->kind == CTL_PENDING) {
        books->pending += trace->quantity;
    } else {
        books->unread += trace->quantity;
    }

    if (person) {
        person->flags |= CTL_FLIGHT;
    }
}


void
ctl_books_judge(ctl_books_t *books)
{
    size_t         i;
    int64_t        limit;
    ctl_person_t  *person;

    if (books->nletters > 0) {
        qsort(books->letters, books->nletters, sizeof(ctl_letter_t), ctl_letter_by_entry);
    }

    for (i = 0; i < books->nletters; i++) {
        ctl_books_judge_letter(books, &books->letters[i]);
    }

    for (i = 0; i < books->ntraces; i++) {
        ctl_books_judge_trace(books, &books->traces[i]);
    }

    for (i = 0; i < books->people.n; i++) {
        person = &books->people.all[i];

        /* accepted after the instant; a larger seq still is one that Redis forgot */
        if ((person->flags & CTL_ORDERED) && person->epoch == books->live.epoch
            && person->seq > books->live.seq && person->seq <= books->seq_after)
        {
            person->flags |= CTL_LATE;
        }

        if ((person->flags & (CTL_ORDERED | CTL_LATE)) == CTL_ORDERED) {
            books->orders += person->units;
        }

        if ((person->flags & CTL_ORDERED) && (person->flags & CTL_TOLD_OK)
            && strcmp(person->told_no, person->order_no) != 0)
        {
            person->flags |= CTL_TOLD_ODD;
        }
    }

    books->live.unread = books->unread;
    books->live.pending = books->pending;

    /* what Redis sells beyond what the ledger took exists nowhere */
    limit = (int64_t) books->live.stock_limit;
    limit = books->reserved >= 0 && books->reserved < limit ? books->reserved : limit;

    books->missing = limit - books->live.stock - books->orders
                     - books->unread - books->pending - books->dead
                     - (books->booked - books->released);
}
