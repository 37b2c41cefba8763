/*
 * See the header.
 */

#include <inttypes.h>
#include <string.h>

#include "skb_log.h"
#include "skd_link.h"

#define SKD_LINK_FIRST_MS   50
#define SKD_LINK_CAP_MS     2000
#define SKD_LINK_DENIED_MS  10000       /* cap when we are refused */
#define SKD_LINK_REMIND_MS  60000


void
skd_link_init(skd_link_t *link, const char *name, unsigned worker)
{
    memset(link, 0, sizeof(skd_link_t));

    link->name = name;
    link->worker = worker;
    link->state = SKD_LINK_NEW;
}


void
skd_link_lost(skd_link_t *link, skd_link_proof_e proof, int denied, const char *reason)
{
    char     quoted[SKD_ERROR_MAX];
    int64_t  now = skd_now_ms();

    skd_backoff_grow(&link->backoff, SKD_LINK_FIRST_MS,
                     denied ? SKD_LINK_DENIED_MS : SKD_LINK_CAP_MS);
    link->tries++;

    skb_log_quote(quoted, sizeof(quoted), reason);

    if (link->state != SKD_LINK_DOWN) {
        link->state = SKD_LINK_DOWN;
        link->wanted = proof;
        link->since_ms = now;
        link->said_ms = now;
        link->tries = 1;

        skb_log(SKB_ERROR, "server is unavailable, waiting", "server=%s worker=%u error=%s",
                link->name, link->worker, quoted);
        return;
    }

    if (proof > link->wanted) {
        link->wanted = proof;
    }

    if (now - link->said_ms >= SKD_LINK_REMIND_MS) {
        link->said_ms = now;

        skb_log(SKB_ERROR, "server is still unavailable",
                "server=%s worker=%u for_ms=%" PRId64 " tries=%u error=%s",
                link->name, link->worker, now - link->since_ms, link->tries, quoted);
    }
}


void
skd_link_good(skd_link_t *link, skd_link_proof_e proof)
{
    if (link->state == SKD_LINK_UP
        || (link->state == SKD_LINK_DOWN && proof < link->wanted))
    {
        return;
    }

    if (link->state == SKD_LINK_DOWN) {
        skb_log(SKB_NOTICE, "server is back",
                "server=%s worker=%u after_ms=%" PRId64 " tries=%u",
                link->name, link->worker, skd_now_ms() - link->since_ms, link->tries);

    } else {
        skb_log(SKB_INFO, "server is connected", "server=%s worker=%u", link->name,
                link->worker);
    }

    link->state = SKD_LINK_UP;
    link->wanted = SKD_LINK_CONNECTED;
    link->tries = 0;
    skd_backoff_reset(&link->backoff);
}
