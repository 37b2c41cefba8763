/*
 * An entry of the orders stream: one accepted purchase, written by
 * lua/admit.lua, read by seckilld.  Fields, all text:
 * v user activity quantity epoch seq order_no accepted_ms request_id ext
 */

#ifndef _SK_MESSAGE_H_INCLUDED_
#define _SK_MESSAGE_H_INCLUDED_

#include "sk_order_no.h"
#include "sk_purchase.h"

#define SK_MESSAGE_VERSION  1

typedef struct {
    uint64_t  user;
    uint64_t  activity;
    uint32_t  quantity;
    uint64_t  epoch;
    uint64_t  seq;
    uint64_t  accepted_ms;
    char      order_no[SK_ORDER_NO_LEN + 1];
    char      request_id[SK_REQUEST_ID_MAX + 1];
    size_t    ext_len;
    char      ext[SK_EXT_MAX + 1];
} sk_message_t;

typedef struct {
    const char  *data;
    size_t       len;
} sk_text_t;

/*
 * fields: names and values in turn, n of both together.  Returns NULL, or the
 * reason as a static text: "field user is missing", "unknown version" ...
 * Unknown fields are ignored.
 */
const char *sk_message_parse(sk_message_t *message, const sk_text_t *fields, size_t n);

#endif /* _SK_MESSAGE_H_INCLUDED_ */
