/*
 * The queue_token: a signed capability to ask what became of one purchase.
 * base64url of version (1), activity (8, big endian), user (8) and the first
 * 16 bytes of their HMAC-SHA256: the same for every retry on every node.
 */

#ifndef _SK_TICKET_H_INCLUDED_
#define _SK_TICKET_H_INCLUDED_

#include "sk_hmac.h"

#define SK_TICKET_LEN  44

/* Writes SK_TICKET_LEN characters without a final NUL.  Returns 0 or -1. */
int sk_ticket_format(char *buf, sk_hmac_t *key, uint64_t activity, uint64_t user);

/* Any of the keys may have signed.  Returns 0 and both ids, or -1. */
int sk_ticket_verify(sk_hmac_t **keys, size_t nkeys, const char *text,
    size_t len, uint64_t *activity, uint64_t *user);

#endif /* _SK_TICKET_H_INCLUDED_ */
