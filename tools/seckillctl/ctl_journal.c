/*
 * Purchases of the journals, in the books of one activity.  Only signed lines get
 * here; the files were looked at before.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_books.h"
#include "ctl_journal.h"


/* nothing new: the user's fate is known, or this purchase was seen */
static int
ctl_line_known(const ctl_books_t *books, const sk_journal_line_t *line,
    const ctl_person_t *person)
{
    uint32_t            at;
    const ctl_trace_t  *trace;

    /*
     * Accepted after the books were opened, or in this very moment.  What an older
     * epoch took is not on its way any more; an epoch of 0 is not known.
     */
    if (books->live.exists && line->time_ms + books->grace_ms > (uint64_t) books->live.now_ms
        && (line->epoch == books->live.epoch || line->epoch == 0))
    {
        return 1;
    }

    if (person == NULL) {
        return 0;
    }

    if (person->flags & (CTL_ORDERED | CTL_TOMB)) {
        return 1;
    }

    for (at = person->trace; at; at = trace->next) {
        trace = &books->traces[at - 1];

        if (trace->epoch == line->epoch && trace->seq == line->seq) {
            return 1;
        }
    }

    return 0;
}


/* request_id and ext, one behind the other */
static char *
ctl_line_words(const sk_journal_line_t *line)
{
    char  *words;

    words = malloc(line->request_id_len + 1 + line->ext_len + 1);

    if (words) {
        memcpy(words, line->request_id, line->request_id_len);
        words[line->request_id_len] = '\0';
        memcpy(words + line->request_id_len + 1, line->ext, line->ext_len);
        words[line->request_id_len + 1 + line->ext_len] = '\0';
    }

    return words;
}


static int
ctl_books_line(ctl_t *ctl, ctl_books_t *books, const sk_journal_line_t *line)
{
    ctl_trace_t  *trace;

    if ((line->kind != SK_JOURNAL_ACCEPTED && line->kind != SK_JOURNAL_UNKNOWN)
        || line->activity != books->activity
        || ctl_line_known(books, line, ctl_person(&books->people, line->user, 0)))
    {
        return CTL_FINE;
    }

    trace = ctl_books_trace(ctl, books, line->user);
    if (trace == NULL) {
        return CTL_REFUSED;
    }

    trace->kind = line->kind == SK_JOURNAL_ACCEPTED ? CTL_JOURNAL : CTL_MAYBE;
    trace->epoch = line->epoch;
    trace->seq = line->seq;
    trace->accepted_ms = line->time_ms;
    trace->quantity = (uint32_t) line->quantity;
    memcpy(trace->order_no, line->order_no, sizeof(trace->order_no));
    trace->words = ctl_line_words(line);

    return trace->words ? CTL_FINE : ctl_fail(ctl, CTL_PARTLY, "out of memory");
}


/* a line that anybody could have written: for people only */
static int
ctl_books_old(ctl_t *ctl, ctl_books_t *books, const ctl_journal_file_t *file)
{
    void            *room;
    ctl_person_t    *person;
    ctl_old_line_t   old;

    if (ctl_old_line_parse(&old, file->text, file->len) != 0 || old.activity != books->activity) {
        return CTL_FINE;
    }

    person = ctl_person(&books->people, old.user, 0);

    if (person && (person->flags & (CTL_ORDERED | CTL_TOMB))) {
        return CTL_FINE;
    }

    room = ctl_books_room(ctl, books->olds, books->nolds, &books->olds_room, sizeof(old),
                          CTL_TRACES_MAX);
    if (room == NULL) {
        return CTL_REFUSED;
    }

    books->olds = room;
    books->olds[books->nolds++] = old;

    return CTL_FINE;
}


int
ctl_books_journal(ctl_t *ctl, ctl_books_t *books, const ctl_journals_t *journals, size_t i)
{
    int                  rc, next;
    sk_journal_line_t    line;
    ctl_journal_file_t  *file;

    file = malloc(sizeof(*file));

    if (file == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    rc = ctl_journal_open(ctl, journals, i, file);

    while (rc == CTL_FINE) {
        next = ctl_journal_next(ctl, file);

        if (next <= 0) {
            rc = next < 0 ? CTL_USAGE : CTL_FINE;
            break;
        }

        switch (ctl_journal_line(journals, ctl_config(ctl)->redis.prefix, file, &line)) {

        case CTL_LINE_SIGNED:
            rc = ctl_books_line(ctl, books, &line);
            break;

        case CTL_LINE_UNSIGNED:
            rc = journals->unsigned_too ? ctl_books_old(ctl, books, file) : CTL_FINE;
            break;

        default:
            break;
        }
    }

    ctl_journal_close(file);
    free(file);

    return rc;
}
