/*
 * The pre-launch checklist: its lines, and who looks at what.  Nothing here
 * changes anything.
 */

#ifndef _CTL_DOCTOR_H_INCLUDED_
#define _CTL_DOCTOR_H_INCLUDED_

#include "ctl_json.h"
#include "ctl_sale.h"

typedef enum {
    CTL_IS_OK,
    CTL_IS_WARNING,
    CTL_IS_WRONG
} ctl_level_e;

#define CTL_NODES_MAX  64

typedef struct {
    ctl_t       *ctl;
    ctl_json_t   json;
    const char  *status[CTL_NODES_MAX]; /* addresses of seckill_status */
    size_t       nstatus;
    uint64_t     users;                 /* expected, 0: not told */
    const char  *nginx_user;            /* in Redis, NULL: not told */
    const char  *seckilld_user;         /* NULL: that of the settings */
    uint64_t     activity;              /* of the lines that follow; 0: of none */
    int          all;                   /* sales that are over are passed over */
    char         title[128];            /* to be printed before the next line */
    size_t       n[CTL_IS_WRONG + 1];

    double       zone;                  /* bytes of the smallest zone seen, 0: of none */
    double       rate;                  /* orders per second of seckilld so far, 0: not known */
    double       commit;                /* seconds of one of its commits, 0: not known */
} ctl_doctor_t;

/* A line: what was looked at, what to do ("" when ok), what was found. */
void ctl_doctor_tell(ctl_doctor_t *doctor, ctl_level_e level, const char *check,
    const char *cure, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* A clock beside that of this host, where asking began and ended at these times. */
void ctl_doctor_clock(ctl_doctor_t *doctor, const char *check, int64_t began_ms, int64_t ended_ms,
    int64_t ms);

/* A limit of users' purchases that is set in Redis. */
void ctl_doctor_limit(ctl_doctor_t *doctor, const ctl_limit_t *limit, const char *cure);

int64_t ctl_doctor_now(void);
int64_t ctl_doctor_now_us(void);

/* A server's connections, used and at most, with the word for where to raise it. */
void ctl_doctor_used(ctl_doctor_t *doctor, const char *cure, uint64_t used, uint64_t max);

void ctl_doctor_nginx(ctl_doctor_t *doctor);

/*
 * All return CTL_FINE when they could look, whatever they saw; or another code
 * after reporting.
 */
int ctl_doctor_host(ctl_doctor_t *doctor);
int ctl_doctor_redis(ctl_doctor_t *doctor);
int ctl_doctor_mysql(ctl_doctor_t *doctor);
int ctl_doctor_defaults(ctl_doctor_t *doctor);
int ctl_doctor_schema(ctl_doctor_t *doctor);
int ctl_doctor_redis_rights(ctl_doctor_t *doctor);
int ctl_doctor_rate(ctl_doctor_t *doctor, const ctl_live_t *live);
int ctl_doctor_whole(ctl_doctor_t *doctor, const ctl_live_t *live);
int ctl_doctor_sale(ctl_doctor_t *doctor, uint64_t activity);

#endif /* _CTL_DOCTOR_H_INCLUDED_ */
