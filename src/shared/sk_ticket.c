
/*
 * The queue_token: ids that only a holder of the key can have put together.
 */


#include <string.h>

#include "sk_base64url.h"
#include "sk_ticket.h"


#define SK_TICKET_VERSION  1
#define SK_TICKET_SIGNED   17           /* version, activity, user */
#define SK_TICKET_MAC      16
#define SK_TICKET_SIZE     (SK_TICKET_SIGNED + SK_TICKET_MAC)
#define SK_TICKET_HMAC     32           /* HMAC-SHA256 before it is cut */


static void sk_ticket_put(uint8_t *p, uint64_t n);
static uint64_t sk_ticket_get(const uint8_t *p);


int
sk_ticket_format(char *buf, sk_hmac_t *key, uint64_t activity, uint64_t user)
{
    uint8_t  ticket[SK_TICKET_SIZE], mac[SK_HMAC_MAX];

    ticket[0] = SK_TICKET_VERSION;
    sk_ticket_put(ticket + 1, activity);
    sk_ticket_put(ticket + 9, user);

    if (sk_hmac_size(key) != SK_TICKET_HMAC
        || sk_hmac(key, ticket, SK_TICKET_SIGNED, mac) != 0)
    {
        return -1;
    }

    memcpy(ticket + SK_TICKET_SIGNED, mac, SK_TICKET_MAC);
    (void) sk_base64url_encode(buf, ticket, SK_TICKET_SIZE);

    return 0;
}


int
sk_ticket_verify(sk_hmac_t **keys, size_t nkeys, const char *text, size_t len,
    uint64_t *activity, uint64_t *user)
{
    size_t   i;
    uint8_t  ticket[SK_TICKET_SIZE], mac[SK_HMAC_MAX];

    if (len != SK_TICKET_LEN
        || sk_base64url_decode(ticket, text, len) != SK_TICKET_SIZE
        || ticket[0] != SK_TICKET_VERSION)
    {
        return -1;
    }

    for (i = 0; i < nkeys; i++) {
        if (sk_hmac_size(keys[i]) == SK_TICKET_HMAC
            && sk_hmac(keys[i], ticket, SK_TICKET_SIGNED, mac) == 0
            && sk_equal(mac, ticket + SK_TICKET_SIGNED, SK_TICKET_MAC))
        {
            *activity = sk_ticket_get(ticket + 1);
            *user = sk_ticket_get(ticket + 9);
            return 0;
        }
    }

    return -1;
}


static void
sk_ticket_put(uint8_t *p, uint64_t n)
{
    int  i;

    for (i = 7; i >= 0; i--) {
        p[i] = (uint8_t) n;
        n >>= 8;
    }
}


static uint64_t
sk_ticket_get(const uint8_t *p)
{
    int       i;
    uint64_t  n;

    n = 0;

    for (i = 0; i < 8; i++) {
        n = n << 8 | p[i];
    }

    return n;
}
