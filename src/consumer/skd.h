/*
 * What the parts of the daemon share: how a step ends, and a few names.
 */

#ifndef _SKD_H_INCLUDED_
#define _SKD_H_INCLUDED_

#ifndef SECKILL_VERSION
#define SECKILL_VERSION  "0.1.0"
#endif

#define SKD_GROUP      "seckilld"       /* the consumer group of every orders stream */
#define SKD_ERROR_MAX  256              /* bytes of an error's text, NUL included */

/*
 * How a step ended.  Only SKD_OK has changed something for good; after all
 * others the entries are still pending and will be read again.
 */
typedef enum {
    SKD_OK,
    SKD_REDIS_LOST,                     /* close the connection, back off, connect */
    SKD_MYSQL_LOST,                     /* the same for MySQL; a COMMIT may have happened */
    SKD_CONFLICT,                       /* deadlock or lock wait: the whole again, soon */
    SKD_DUPLICATE,                      /* a unique key is taken: the whole again, with a look */
    SKD_SPLIT,                          /* something in it can't be stored, or it is too large */
    SKD_OLDER,                          /* of an epoch before the row's: does Redis hold it? */
    SKD_BLOCKED,                        /* this activity can't go on: back off it alone */
    SKD_STOPPED                         /* the daemon is told to stop */
} skd_rc_e;

#endif /* _SKD_H_INCLUDED_ */
