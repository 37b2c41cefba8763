/*
 * The books of a sale: Redis at one instant, then MySQL, then the nodes'
 * journals, joined by user and by purchase.
 *
 *   limit = remaining + orders + unread + pending + open dead letters + released
 *
 * in units.  What happens while the books are read never looks wrong: a purchase
 * accepted after the instant does not count, and one that moves meanwhile counts
 * once, where it was seen last.
 */

#ifndef _CTL_BOOKS_H_INCLUDED_
#define _CTL_BOOKS_H_INCLUDED_

#include "ctl_books_sums.h"
#include "ctl_journal.h"
#include "ctl_old_line.h"
#include "ctl_people.h"
#include "ctl_sale.h"
#include "ctl_terms.h"
#include "ctl_whole.h"
#include "sk_message.h"

#define CTL_GROUP       "seckilld"      /* the consumer group */
#define CTL_TRACES_MAX  8000000         /* entries and journal lines in memory */
#define CTL_ENTRY_MAX   48              /* bytes of an entry's id as text, NUL included */
#define CTL_REASON_MAX  48

/* An id of a stream entry. */
typedef struct {
    uint64_t  ms;
    uint64_t  n;
} ctl_entry_t;

typedef enum {
    CTL_ACKED,                          /* the entry was read and acknowledged */
    CTL_PENDING,
    CTL_UNREAD,
    CTL_JOURNAL,                        /* no entry: a line of a journal */
    CTL_MAYBE                           /* no entry: sent by a node and never answered */
} ctl_trace_e;

/* A purchase that left a trace which is not an order. */
typedef struct {
    uint64_t      user;
    uint64_t      epoch;                /* 0: the entry makes no sense */
    uint64_t      seq;
    uint64_t      accepted_ms;
    ctl_entry_t   entry;
    uint32_t      quantity;
    uint32_t      next;                 /* of the same user: index plus 1 */
    ctl_trace_e   kind;
    char          order_no[SK_ORDER_NO_LEN + 1];
    char         *words;                /* of a line: request_id, and behind its NUL ext */
} ctl_trace_t;

typedef struct {
    char         id[CTL_ENTRY_MAX];     /* in the dead stream */
    ctl_entry_t  entry;                 /* in the orders stream; 0-0: not known */
    int          has_user;
    int          whole;                 /* it holds all of a purchase */
    int          closed;                /* its units are accounted for elsewhere */
    uint64_t     user;
    uint64_t     epoch;
    uint64_t     seq;
    uint32_t     quantity;              /* 0: not known */
    uint64_t     dead_ms;
    char         reason[CTL_REASON_MAX];
} ctl_letter_t;

/* A purchase that the ledger knows beside the orders: a second one of a user. */
typedef struct {
    uint64_t  epoch;
    uint64_t  seq;
} ctl_identity_t;

typedef struct {
    uint64_t         activity;
    uint64_t         grace_ms;          /* younger is in flight, whatever it looks like */

    /* Redis at the instant */
    ctl_live_t       live;
    int64_t          restocked;         /* of the facts */
    int64_t          released;
    ctl_entry_t      last;              /* newest entry */
    ctl_entry_t      delivered;         /* by the group */
    uint64_t         seq_after;         /* of the facts, once MySQL was read */
    char             whole[CTL_WHOLE_MAX];  /* or what is missing; "": not known */

    /* MySQL after it */
    ctl_row_t        row;
    ctl_promise_t    promise;           /* is the row as buyers were promised */
    int64_t          reserved;          /* by preheats and restocks; -1: no such row */
    int64_t          restocks;          /* by restocks */
    int64_t          booked;            /* units of purchases that are no order, not on sale */
    int64_t          resold;            /* units that the ledger put back on sale, ever */
    uint64_t         releases;          /* users released, ever */
    uint64_t         seq_ordered;       /* largest one of this epoch that has an order */
    ctl_sums_t       sums;

    ctl_people_t     people;
    ctl_trace_t     *traces;
    size_t           ntraces;
    size_t           traces_room;
    size_t           nentries;          /* the first ones are entries, by id */
    ctl_letter_t    *letters;
    size_t           nletters;
    size_t           letters_room;
    ctl_old_line_t  *olds;              /* unsigned lines of users without an order */
    size_t           nolds;
    size_t           olds_room;
    ctl_identity_t  *extras;            /* sorted */
    size_t           nextras;
    size_t           extras_room;

    /* in units, once judged */
    int64_t          orders;
    int64_t          unread;
    int64_t          pending;
    int64_t          dead;
    int64_t          missing;           /* limit minus all the others; negative: too many */
} ctl_books_t;

/* All return CTL_FINE, or another code after reporting. */

/*
 * Redis, then MySQL; live.exists tells whether Redis has the facts.  Then comes
 * ctl_books_journal() for each journal, ctl_books_results(), ctl_books_judge().
 */
int ctl_books_read(ctl_t *ctl, ctl_books_t *books, uint64_t activity);
void ctl_books_free(ctl_books_t *books);

/* Its steps, in this order. */
int ctl_books_members(ctl_t *ctl, ctl_books_t *books);
int ctl_books_open(ctl_t *ctl, ctl_books_t *books);
int ctl_books_stream(ctl_t *ctl, ctl_books_t *books);
int ctl_books_letters(ctl_t *ctl, ctl_books_t *books);
int ctl_books_mysql(ctl_t *ctl, ctl_books_t *books);

/* The rows alone, inside the caller's transaction; data is a ctl_books_t. */
int ctl_books_rows(ctl_t *ctl, void *data);

/* Adds the purchases of a journal; users whose fate MySQL knows are skipped. */
int ctl_books_journal(ctl_t *ctl, ctl_books_t *books, const ctl_journals_t *journals, size_t i);

/* What everybody was told, and a second look at order_users. */
int ctl_books_results(ctl_t *ctl, ctl_books_t *books);

/* Places every purchase, sums up the units, sets CTL_FLIGHT and the rest of the flags. */
void ctl_books_judge(ctl_books_t *books);

/* MySQL knows a later epoch or purchase than Redis: data was lost. */
int ctl_books_behind(const ctl_books_t *books);

/* For the readers: a new trace or letter, zeroed, or NULL after reporting. */
ctl_trace_t *ctl_books_trace(ctl_t *ctl, ctl_books_t *books, uint64_t user);
ctl_person_t *ctl_books_person(ctl_t *ctl, ctl_books_t *books, uint64_t user);
void *ctl_books_room(ctl_t *ctl, void *array, size_t n, size_t *room, size_t size,
    size_t max);

/* "12-0"; returns 0 or -1. */
int ctl_entry_parse(ctl_entry_t *entry, const char *text);
int ctl_entry_cmp(const ctl_entry_t *a, const ctl_entry_t *b);

/* The ledger names this purchase as a second one. */
int ctl_books_extra(const ctl_books_t *books, uint64_t epoch, uint64_t seq);

/* The letter of this reply of XRANGE: [id, [name, value ...]]. */
void ctl_letter_parse(ctl_letter_t *letter, const redisReply *entry);

/*
 * A purchase as an entry or a letter holds it.  Returns 2 when it is whole, 1
 * when only message->user is good, 0 when not even that.
 */
int ctl_message_read(const redisReply *fields, sk_message_t *message);

#endif /* _CTL_BOOKS_H_INCLUDED_ */
