/*
 * What an operator has set in Redis: the limit of a user's purchases, and what
 * holds for all sales.
 */

#ifndef _CTL_CONTROL_H_INCLUDED_
#define _CTL_CONTROL_H_INCLUDED_

#include "ctl_backend.h"
#include "ctl_json.h"
#include "sk_limit.h"

#define CTL_LIMIT_TEXT  48              /* "1000r/m burst=1000", NUL included, and a sentence */

typedef struct {
    char      rate[2 * SK_RATE_TEXT];   /* also "off", or damaged; "": none is set */
    uint64_t  burst;
} ctl_limit_t;

/* The hash that all nodes watch. */
typedef struct {
    int          exists;
    int          closed;
    ctl_limit_t  limit;
} ctl_control_t;

/* CTL_FINE, or another code after reporting. */
int ctl_control_read(ctl_t *ctl, ctl_control_t *control);

/* From the fields limit and limit_burst. */
void ctl_limit_take(ctl_limit_t *limit, const redisReply *rate, const redisReply *burst);

/* For people; buf has CTL_LIMIT_TEXT bytes. */
void ctl_limit_text(char *buf, const ctl_limit_t *limit);

/* {"rate":..,"burst":..}, or null. */
void ctl_limit_json(ctl_json_t *json, const char *key, const ctl_limit_t *limit);

#endif /* _CTL_CONTROL_H_INCLUDED_ */
