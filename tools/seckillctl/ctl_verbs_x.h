/*
 * Every verb, in the order --help lists them.  A verb is a file ctl_<verb>.c
 * that defines ctl_<verb>_verb, and a row here.
 */

CTL_VERB(schema)
CTL_VERB(preheat)
CTL_VERB(doctor)
CTL_VERB(status)
CTL_VERB(close)
CTL_VERB(open)
CTL_VERB(limit)
CTL_VERB(restock)
CTL_VERB(reconcile)
CTL_VERB(settle)
CTL_VERB(restore)
CTL_VERB(queue)
CTL_VERB(dead)
CTL_VERB(order)
CTL_VERB(trace)
CTL_VERB(token)
CTL_VERB(verify)
