/*
 * Places where a test lets the daemon die or pause: always compiled in, so
 * that what is tested is what runs, and active only when the environment says
 *
 *   SECKILLD_FAILPOINT=after_commit          kill -9 itself there
 *   SECKILLD_FAILPOINT=after_commit:3        at the third time
 *   SECKILLD_FAILPOINT=after_insert:1:2000   pause there for 2000 ms instead
 */

#ifndef _SKD_FAILPOINT_H_INCLUDED_
#define _SKD_FAILPOINT_H_INCLUDED_

typedef enum {
    SKD_AFTER_READ,                     /* entries are delivered, nothing done */
    SKD_AFTER_BEGIN,                    /* the activity was read, nothing is written */
    SKD_AFTER_INSERT,                   /* all rows written, nothing committed */
    SKD_AFTER_COMMIT,                   /* committed, Redis knows nothing */
    SKD_IN_SETTLE,                      /* one call of settle.lua is done, maybe not all */
    SKD_AFTER_SETTLE,                   /* results written, entries acknowledged */
    SKD_FAILPOINTS
} skd_failpoint_e;

/* Reads the environment, before there are threads.  Returns 0, or -1: not understood. */
int skd_failpoint_init(void);

void skd_failpoint(skd_failpoint_e point);

#endif /* _SKD_FAILPOINT_H_INCLUDED_ */
