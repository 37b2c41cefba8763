/*
 * The journal of a node: one signed line per purchase that may have been taken,
 * written by the module and read by seckillctl.
 *
 *   1 KIND PREFIX KEYID TIME ACTIVITY EPOCH SEQ USER QUANTITY ORDER_NO REQUEST_ID EXT MAC
 *   1 open PREFIX KEYID TIME NODE MAC
 *   1 gap PREFIX KEYID TIME LINES FROM TO MAC
 *
 * KIND is "accepted", or "unknown" for a purchase that was sent and never
 * answered: then SEQ is 0 and ORDER_NO "-".  TIME, FROM and TO are epoch
 * milliseconds.  Fields are parted by one space.  EXT is escaped, "-" when empty.
 * MAC is HMAC-SHA256 of all before its space, cut to 128 bits, as hex digits.
 */

#ifndef _SK_JOURNAL_H_INCLUDED_
#define _SK_JOURNAL_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#include "sk_hmac.h"
#include "sk_key.h"
#include "sk_order_no.h"
#include "sk_purchase.h"

#define SK_JOURNAL_ID    16             /* hex digits of a key's name */
#define SK_JOURNAL_NODE  SK_REQUEST_ID_MAX      /* bytes of a host's name */

/* bytes of the longest line, without a line end: every byte of ext is escaped */
#define SK_JOURNAL_LINE  (2 + 9 + SK_PREFIX_MAX + 1 + SK_JOURNAL_ID + 1 + 6 * 21              \
                          + SK_ORDER_NO_LEN + 1 + SK_REQUEST_ID_MAX + 1 + 3 * SK_EXT_MAX + 33)

typedef enum {
    SK_JOURNAL_ACCEPTED,
    SK_JOURNAL_UNKNOWN,
    SK_JOURNAL_OPEN,                    /* the file was opened: it is a journal */
    SK_JOURNAL_GAP,                     /* lines are missing that could not be written */
    SK_JOURNAL_KINDS
} sk_journal_kind_e;

/* What signs lines: made from the key of the queue tokens. */
typedef struct {
    char        id[SK_JOURNAL_ID];      /* names the key and tells nothing of it */
    sk_hmac_t  *hmac;
} sk_journal_key_t;

/* Texts belong to the caller when a line is made; to its text when it was read. */
typedef struct {
    sk_journal_kind_e  kind;
    const char        *prefix;
    size_t             prefix_len;
    char               key_id[SK_JOURNAL_ID];   /* read only */
    uint64_t           time_ms;

    /* accepted, unknown */
    uint64_t           activity;
    uint64_t           epoch;           /* unknown: the last one that was heard of, or 0 */
    uint64_t           seq;
    uint64_t           user;
    uint64_t           quantity;
    char               order_no[SK_ORDER_NO_LEN + 1];   /* unknown: "" */
    const char        *request_id;
    size_t             request_id_len;
    size_t             ext_len;
    const char        *ext;             /* made from here */
    char               ext_text[SK_EXT_MAX + 1];        /* read into here, ext points to it */

    /* open */
    const char        *node;
    size_t             node_len;

    /* gap */
    uint64_t           lost;
    uint64_t           from_ms;
    uint64_t           to_ms;
} sk_journal_line_t;

/* Returns 0, or -1: no memory.  token_key is the key of the queue tokens. */
int sk_journal_key_init(sk_journal_key_t *key, const void *token_key, size_t len);
void sk_journal_key_done(sk_journal_key_t *key);

/*
 * Writes a line without a line end; buf has SK_JOURNAL_LINE bytes.  Returns its
 * bytes, or 0: OpenSSL failed, or a text is not allowed in a line.
 */
size_t sk_journal_format(char *buf, const sk_journal_key_t *key, const sk_journal_line_t *line);

/*
 * Reads a line without its line end.  Returns 0, or -1: not whole, or not just as
 * sk_journal_format() writes it.  Nothing in it is to be believed yet.
 */
int sk_journal_parse(sk_journal_line_t *line, const char *text, size_t len);

/* 1 when the key has signed the text of a line that sk_journal_parse() took. */
int sk_journal_signed(const sk_journal_key_t *key, const char *text, size_t len);

#endif /* _SK_JOURNAL_H_INCLUDED_ */
