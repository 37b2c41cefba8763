/*
 * See the header.
 */

#include "ctl_ledger.h"


static int
ctl_ledger_code(ctl_t *ctl, skb_ledger_e rc, const char *error)
{
    switch (rc) {

    case SKB_LEDGER_FAILED:
        return ctl_sql_failed(ctl);

    case SKB_LEDGER_REFUSED:
        return ctl_fail(ctl, CTL_REFUSED, "%s", error);

    default:
        return CTL_FINE;
    }
}


int
ctl_ledger_add(ctl_t *ctl, const skb_movement_t *movement, int *fresh)
{
    char            actor[CTL_ACTOR_MAX], error[SKB_LEDGER_ERROR_MAX];
    skb_ledger_e    rc;
    skb_movement_t  line;

    line = *movement;

    if (line.actor == NULL) {
        ctl_actor(actor, sizeof(actor));
        line.actor = actor;
    }

    rc = skb_ledger_add(ctl_mysql(ctl), &line, error);

    if (fresh) {
        *fresh = rc == SKB_LEDGER_ADDED;
    }

    return ctl_ledger_code(ctl, rc, error);
}


int
ctl_ledger_product(ctl_t *ctl, uint64_t activity, uint64_t fallback, uint64_t *product)
{
    char  error[SKB_LEDGER_ERROR_MAX];

    return ctl_ledger_code(ctl, skb_ledger_product(ctl_mysql(ctl), activity, fallback, product,
                                                   error), error);
}


int
ctl_ledger_units(ctl_t *ctl, uint64_t activity, skb_units_t *units)
{
    char  error[SKB_LEDGER_ERROR_MAX];

    return ctl_ledger_code(ctl, skb_ledger_units(ctl_mysql(ctl), activity, units, error), error);
}
