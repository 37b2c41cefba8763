/*
 * What a switch is set for: one sale, or all of them.  A script writes it to the
 * sale's hash or to the control hash; then rev of the control hash tells every
 * node, each of which looks at it once per seckill_refresh.
 */

#ifndef _CTL_TARGET_H_INCLUDED_
#define _CTL_TARGET_H_INCLUDED_

#include "ctl_backend.h"
#include "ctl_json.h"

#define CTL_TARGET_ARGS  2              /* of a script, besides what the target is */

typedef struct {
    int       all;
    uint64_t  activity;
    uint64_t  rev;                      /* of the sale, as the script told */
} ctl_target_t;

/* The activity as typed.  CTL_FINE, or the code of wrong usage after reporting. */
int ctl_target_activity(ctl_t *ctl, ctl_target_t *target, const char *word);

/* Opens Redis and runs the script on the target's hash; args end with NULL.  As ctl_redis_eval(). */
int ctl_target_eval(ctl_t *ctl, const ctl_target_t *target, redisReply **reply,
    sk_script_e script, const char **args);

/* The script found no hash: reports it, returns the exit code. */
int ctl_target_missing(ctl_t *ctl, const ctl_target_t *target);

/*
 * Tells the nodes, also when nothing changed: the run that changed it may not
 * have come so far.  CTL_FINE, or CTL_PARTLY after reporting.
 */
int ctl_target_told(ctl_t *ctl);

/* The begin of the line for people, and of the JSON map. */
void ctl_target_print(const ctl_target_t *target, const char *when, const char *actor);
void ctl_target_json(ctl_json_t *json, const ctl_target_t *target);

#endif /* _CTL_TARGET_H_INCLUDED_ */
