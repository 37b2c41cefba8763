/*
 * Mending and replaying.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_ledger.h"
#include "ctl_repair.h"
#include "ctl_replay_check.h"
#include "sk_order_no.h"
#include "sk_purchase.h"
#include "sk_result.h"

#define CTL_REPLAY_HEAD  4              /* arguments of lua/replay.lua */
#define CTL_REPLAY_ARGS  9              /* ... and of one purchase */


static int
ctl_repair_wants(const ctl_repair_t *repair, const ctl_finding_t *finding)
{
    return repair->user == 0 || repair->user == finding->user;
}


/* Whoever was asked to write and did not answer may have done it. */
static int
ctl_repair_unsure(ctl_finding_t *finding, int rc)
{
    if (rc != CTL_UNREACHABLE) {
        return rc;
    }

    finding->done = "not known: run it again";

    return CTL_PARTLY;
}


static int
ctl_mend_member(ctl_t *ctl, ctl_repair_t *repair, uint64_t user)
{
    int          rc;
    char         keys[2][SK_KEY_MAX + 1], number[24];
    redisReply  *reply;

    ctl_key(ctl, keys[0], SK_KEY_ACTIVITY, repair->books->activity, 0);
    ctl_key(ctl, keys[1], SK_KEY_BUYERS, repair->books->activity, 0);
    snprintf(number, sizeof(number), "%" PRIu64, user);

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_MEND, 2,
                        (const char *[]) { keys[0], keys[1], number }, 1);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_INTEGER) {
        repair->members += ctl_reply_u64(reply);
    } else {
        rc = ctl_redis_refused(ctl, reply);
    }

    freeReplyObject(reply);

    return rc;
}


/* what MySQL knows, written and told */
static int
ctl_mend_result(ctl_t *ctl, const ctl_repair_t *repair, const ctl_person_t *person)
{
    int          rc;
    char         key[SK_KEY_MAX + 1], channel[SK_KEY_MAX + 1], text[SK_RESULT_MAX + 1];
    char         told[SK_RESULT_MAX + 32];
    redisReply  *reply;
    sk_result_t  result;

    memset(&result, 0, sizeof(result));
    result.success = (person->flags & CTL_ORDERED) != 0;

    if (result.success) {
        result.order_id = person->order_id;
        memcpy(result.order_no, person->order_no, sizeof(result.order_no));
    } else {
        strcpy(result.reason, "failed");
    }

    text[sk_result_format(text, &result)] = '\0';
    ctl_key(ctl, key, SK_KEY_RESULT, repair->books->activity, person->user);
    ctl_key(ctl, channel, SK_KEY_RESULTS, repair->books->activity, 0);

    /* a failure never replaces what is there */
    rc = result.success ? ctl_redis(ctl, &reply, "SET %s %s", key, text)
                        : ctl_redis(ctl, &reply, "SET %s %s NX", key, text);
    if (rc != CTL_FINE) {
        return rc;
    }

    freeReplyObject(reply);

    snprintf(told, sizeof(told), "%" PRIu64 " %s", person->user, text);

    rc = ctl_redis(ctl, &reply, "PUBLISH %s %s", channel, told);

    if (rc == CTL_FINE) {
        freeReplyObject(reply);
    }

    return rc;
}


int
ctl_repair_mend(ctl_t *ctl, ctl_repair_t *repair)
{
    int             rc;
    size_t          i;
    uint32_t        flags;
    ctl_person_t   *person;
    ctl_finding_t  *finding;

    for (i = 0; i < repair->findings->n; i++) {
        finding = &repair->findings->all[i];
        person = ctl_person((ctl_people_t *) &repair->books->people, finding->user, 0);

        if (person == NULL || !ctl_repair_wants(repair, finding)) {
            continue;
        }

        flags = person->flags;

        if (finding->kind == CTL_IS_NOT_MEMBER) {
            rc = ctl_mend_member(ctl, repair, finding->user);

        } else if (finding->kind == CTL_IS_NO_RESULT
                   || (finding->kind == CTL_IS_CONTRADICTION && (flags & CTL_ORDERED)
                       && !(flags & (CTL_TOMB | CTL_RELEASED))))
        {
            rc = ctl_mend_result(ctl, repair, person);

        } else {
            continue;
        }

        if (rc != CTL_FINE) {
            return ctl_repair_unsure(finding, rc);
        }

        finding->done = "mended";
        repair->mended++;
    }

    return CTL_FINE;
}


/* somebody else's order or entry has this identity: after data loss seq begins anew */
static int
ctl_replay_taken(ctl_t *ctl, const ctl_repair_t *repair, const ctl_finding_t *finding,
    int *taken)
{
    int                 rc;
    size_t              i;
    MYSQL_RES          *res;
    const ctl_trace_t  *trace;

    for (i = 0; i < repair->books->nentries; i++) {
        trace = &repair->books->traces[i];

        if (trace->epoch == finding->epoch && trace->seq == finding->seq
            && trace->user != finding->user)
        {
            *taken = 1;
            return CTL_FINE;
        }
    }

    rc = ctl_sql(ctl, &res, "SELECT id FROM seckill_orders WHERE activity_id = %" PRIu64
                 " AND epoch = %" PRIu64 " AND seq = %" PRIu64, repair->books->activity,
                 finding->epoch, finding->seq);

    if (rc == CTL_FINE) {
        *taken = mysql_num_rows(res) > 0;
        mysql_free_result(res);
    }

    return rc;
}


/* request_id and ext, of the line or of the entry when it is still there */
static int
ctl_replay_entry(ctl_t *ctl, const ctl_repair_t *repair, const ctl_trace_t *trace,
    sk_message_t *message)
{
    int          rc;
    char         key[SK_KEY_MAX + 1], id[CTL_ENTRY_MAX];
    redisReply  *reply;

    memset(message, 0, sizeof(*message));
    strcpy(message->request_id, "replay");

    if (trace && trace->words) {
        /* a line of a journal: both were proved when it was read */
        snprintf(message->request_id, sizeof(message->request_id), "%s", trace->words);
        snprintf(message->ext, sizeof(message->ext), "%s",
                 trace->words + strlen(trace->words) + 1);
        return CTL_FINE;
    }

    if (trace == NULL) {
        return CTL_FINE;
    }

    ctl_key(ctl, key, SK_KEY_ORDERS, repair->books->activity, 0);
    snprintf(id, sizeof(id), "%" PRIu64 "-%" PRIu64, trace->entry.ms, trace->entry.n);

    rc = ctl_redis(ctl, &reply, "XRANGE %s %s %s", key, id, id);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->elements == 1) {
        (void) ctl_message_read(skb_redis_at(skb_redis_at(reply, 0), 1), message);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


/* what every call of lua/replay.lua begins with: keys, activity, now_ms, and head */
static void
ctl_replay_keys(ctl_t *ctl, const ctl_repair_t *repair, char (*keys)[SK_KEY_MAX + 1],
    char (*number)[24], char *head)
{
    sk_order_no_t  no;

    memset(&no, 0, sizeof(no));
    no.accepted_ms = (uint64_t) repair->books->live.now_ms;
    no.activity = repair->books->activity;
    sk_order_no_format(head, &no);
    head[21] = '\0';

    ctl_key(ctl, keys[0], SK_KEY_ACTIVITY, repair->books->activity, 0);
    ctl_key(ctl, keys[1], SK_KEY_STOCK, repair->books->activity, 0);
    ctl_key(ctl, keys[2], SK_KEY_BUYERS, repair->books->activity, 0);
    ctl_key(ctl, keys[3], SK_KEY_ORDERS, repair->books->activity, 0);

    snprintf(number[0], sizeof(number[0]), "%" PRIu64, repair->books->activity);
    snprintf(number[1], sizeof(number[1]), "%" PRId64, repair->books->live.now_ms);
}


/* Redis forgot it with its units, or never took it */
static int
ctl_replay_vanished(const ctl_finding_t *finding)
{
    return finding->kind == CTL_IS_VANISHED || finding->kind == CTL_IS_MAYBE;
}


/* One purchase; *verdict is lua/replay.lua's digit. */
static int
ctl_replay_script(ctl_t *ctl, const ctl_repair_t *repair, const ctl_finding_t *finding,
    int fresh, char *verdict)
{
    int                 rc;
    char                keys[4][SK_KEY_MAX + 1], number[7][24], head[SK_ORDER_NO_LEN + 1];
    redisReply         *reply;
    sk_message_t        message;
    const ctl_trace_t  *trace;

    trace = finding->trace >= 0 ? &repair->books->traces[finding->trace] : NULL;

    rc = ctl_replay_entry(ctl, repair, trace, &message);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_replay_keys(ctl, repair, keys, number, head);
    snprintf(number[2], sizeof(number[2]), "%" PRIu64, finding->user);
    snprintf(number[3], sizeof(number[3]), "%" PRIu64, finding->units);
    snprintf(number[4], sizeof(number[4]), "%" PRIu64, finding->epoch);
    snprintf(number[5], sizeof(number[5]), "%" PRIu64, fresh ? 0 : finding->seq);
    snprintf(number[6], sizeof(number[6]), "%" PRIu64, trace ? trace->accepted_ms : 0);

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_REPLAY, 4, (const char *[]) {
                            keys[0], keys[1], keys[2], keys[3], number[0], head, number[1],
                            "0", number[2], number[3], number[4], number[5],
                            trace ? trace->order_no : "", number[6], message.request_id,
                            message.ext, ctl_replay_vanished(finding) ? "1" : "0"
                        }, CTL_REPLAY_HEAD + CTL_REPLAY_ARGS);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_STRING && reply->len == 1) {
        *verdict = reply->str[0];
    } else {
        rc = ctl_redis_refused(ctl, reply);
    }

    freeReplyObject(reply);

    return rc;
}


int
ctl_repair_told(ctl_t *ctl, const ctl_repair_t *repair)
{
    int          rc;
    char         keys[4][SK_KEY_MAX + 1], number[2][24], head[SK_ORDER_NO_LEN + 1];
    redisReply  *reply;

    /* who is in flight may have been queued by a run that was cut off before it told */
    if (repair->members == 0 && repair->queued == 0
        && (repair->replays == 0 || repair->findings->skipped == 0))
    {
        return CTL_FINE;
    }

    ctl_replay_keys(ctl, repair, keys, number, head);

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_REPLAY, 4, (const char *[]) {
                            keys[0], keys[1], keys[2], keys[3], number[0], head, number[1], "1"
                        }, CTL_REPLAY_HEAD);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type != REDIS_REPLY_STRING) {
        rc = ctl_redis_refused(ctl, reply);
    }

    freeReplyObject(reply);

    return rc == CTL_FINE ? ctl_nodes_tell(ctl) : rc;
}


static int
ctl_replay_log(ctl_t *ctl, const ctl_repair_t *repair, const ctl_finding_t *finding)
{
    char            ref[32], note[80];
    skb_movement_t  movement;

    snprintf(ref, sizeof(ref), "user:%" PRIu64, finding->user);
    snprintf(note, sizeof(note), "epoch %" PRIu64 " seq %" PRIu64, finding->epoch, finding->seq);

    memset(&movement, 0, sizeof(movement));
    movement.activity = repair->books->activity;
    movement.product = repair->books->row.product_id;
    movement.epoch = repair->books->row.epoch;
    movement.kind = "replay";
    movement.ref = ref;
    movement.note = note;

    return ctl_ledger_add(ctl, &movement, NULL);
}


static int
ctl_replay_one(ctl_t *ctl, ctl_repair_t *repair, ctl_finding_t *finding)
{
    int          rc, taken;
    char         verdict = '\0';
    const char  *why;

    if (finding->units == 0) {
        finding->done = "not queued: how many units is not known, give the journals";
        repair->left++;
        return CTL_FINE;
    }

    taken = 0;

    rc = ctl_replay_check(ctl, repair, finding, &taken, &why);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (why) {
        finding->done = why;
        repair->left++;
        return CTL_FINE;
    }

    if (finding->trace >= 0 && !taken) {
        rc = ctl_replay_taken(ctl, repair, finding, &taken);
        if (rc != CTL_FINE) {
            return rc;
        }
    }

    if (finding->kind == CTL_IS_LOST) {
        /* an entry says so, the set may have lost it */
        rc = ctl_mend_member(ctl, repair, finding->user);
        if (rc != CTL_FINE) {
            return ctl_repair_unsure(finding, rc);
        }
    }

    if ((rc = ctl_replay_log(ctl, repair, finding)) != CTL_FINE
        || (rc = ctl_replay_script(ctl, repair, finding, taken || finding->trace < 0, &verdict))
           != CTL_FINE)
    {
        return ctl_repair_unsure(finding, rc);
    }

    ctl_failpoint("after_replay");

    if (verdict == '1') {
        finding->done = "queued";
        repair->queued++;

    } else {
        finding->done = verdict == '3' ? "not queued: no units are left"
                        : verdict == '4' ? "not queued: Redis can't add to the stream"
                                         : "not queued: has bought again meanwhile";
        repair->left++;
    }

    return CTL_FINE;
}


int
ctl_repair_replay(ctl_t *ctl, ctl_repair_t *repair)
{
    int             rc;
    size_t          i;
    ctl_finding_t  *finding;

    repair->replays = 1;

    for (i = 0; i < repair->findings->n; i++) {
        finding = &repair->findings->all[i];

        if ((finding->kind != CTL_IS_LOST && finding->kind != CTL_IS_VANISHED
             && (finding->kind != CTL_IS_MAYBE || repair->user == 0))
            || !ctl_repair_wants(repair, finding))
        {
            continue;
        }

        rc = ctl_replay_one(ctl, repair, finding);
        if (rc != CTL_FINE) {
            return repair->queued > 0 || repair->mended > 0 ? CTL_PARTLY : rc;
        }
    }

    return CTL_FINE;
}
