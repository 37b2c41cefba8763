/*
 * See the header.  A table is searched from end to end: it is short, and empty
 * on a good day.
 */

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "skb_log.h"
#include "skd.h"
#include "skd_clock.h"
#include "skd_stats.h"
#include "skd_trouble.h"

#define SKD_TROUBLE_FIRST_MS  1000
#define SKD_TROUBLE_CAP_MS    60000
#define SKD_TROUBLE_SAY_MS    60000     /* between lines about the same */
#define SKD_TROUBLE_GONE_MS   10000     /* it was due, and did not fail again */
#define SKD_TROUBLE_BUSY      3         /* tries, until a row that is held is worth a line */

/* only the keeper writes; metrics and health read */
static pthread_mutex_t  skd_troubles_mutex = PTHREAD_MUTEX_INITIALIZER;
static skd_trouble_t    skd_troubles[SKD_TROUBLES_MAX];
static size_t           skd_troubles_count;
static int64_t          skd_troubles_full_ms;

static const char *const  skd_duty_names[SKD_DUTIES] = {
#define SKD_DUTY(name, label, help)  label,
#include "skd_duties_x.h"
#undef SKD_DUTY
};


const char *
skd_duty_name(skd_duty_e duty)
{
    return skd_duty_names[duty];
}


/* The caller holds the mutex. */
static skd_trouble_t *
skd_trouble_find(skd_duty_e duty, uint64_t activity, uint64_t order)
{
    for (size_t i = 0; i < skd_troubles_count; i++) {
        if (skd_troubles[i].duty == duty && skd_troubles[i].activity == activity
            && skd_troubles[i].order == order)
        {
            return &skd_troubles[i];
        }
    }

    return NULL;
}


/* The caller holds the mutex.  NULL: the table is full. */
static skd_trouble_t *
skd_trouble_note(skd_duty_e duty, uint64_t activity, uint64_t order)
{
    skd_trouble_t  *trouble = skd_trouble_find(duty, activity, order);

    if (trouble == NULL && skd_troubles_count < SKD_TROUBLES_MAX) {
        trouble = &skd_troubles[skd_troubles_count++];
        memset(trouble, 0, sizeof(skd_trouble_t));
        trouble->duty = duty;
        trouble->activity = activity;
        trouble->order = order;
    }

    if (trouble != NULL) {
        trouble->tries++;
        trouble->delay_ms = trouble->delay_ms == 0 ? SKD_TROUBLE_FIRST_MS
                            : trouble->delay_ms > SKD_TROUBLE_CAP_MS / 2 ? SKD_TROUBLE_CAP_MS
                            : trouble->delay_ms * 2;
        trouble->next_ms = skd_now_ms() + skd_jitter(trouble->delay_ms);
    }

    return trouble;
}


static void
skd_trouble_say(const skd_trouble_t *trouble, const char *order_no, const char *error)
{
    char  quoted[SKD_ERROR_MAX];

    skb_log_quote(quoted, sizeof(quoted), error);

    if (trouble->activity == 0) {
        skb_log(SKB_WARN, "keeper can't do its duty", "duty=%s tries=%u error=%s",
                skd_duty_name(trouble->duty), trouble->tries, quoted);

    } else if (trouble->order == 0) {
        skb_log(SKB_WARN, "keeper can't do its duty for an activity",
                "duty=%s activity=%" PRIu64 " tries=%u error=%s", skd_duty_name(trouble->duty),
                trouble->activity, trouble->tries, quoted);

    } else {
        skb_log(SKB_WARN, "keeper can't do its duty for an order",
                "duty=%s activity=%" PRIu64 " order=%s order_id=%" PRIu64 " tries=%u error=%s",
                skd_duty_name(trouble->duty), trouble->activity,
                order_no != NULL ? order_no : "unknown", trouble->order, trouble->tries, quoted);
    }
}


void
skd_trouble(skd_duty_e duty, uint64_t activity, uint64_t order, const char *order_no, int busy,
    const char *error)
{
    int             say = 0;
    int64_t         now = skd_now_ms();
    skd_trouble_t  *found, trouble;

    skd_count((skd_count_e) (SKD_COUNT_FAILED_REGISTRY + duty), 1);
    memset(&trouble, 0, sizeof(trouble));
    pthread_mutex_lock(&skd_troubles_mutex);

    found = skd_trouble_note(duty, activity, order);

    if (found != NULL) {
        if ((!busy || found->tries >= SKD_TROUBLE_BUSY)
            && (found->said_ms == 0 || now - found->said_ms >= SKD_TROUBLE_SAY_MS))
        {
            found->said_ms = now;
            say = 1;
        }

        trouble = *found;

    } else if (skd_troubles_full_ms == 0 || now - skd_troubles_full_ms >= SKD_TROUBLE_SAY_MS) {
        skd_troubles_full_ms = now;
        say = 1;
        trouble = (skd_trouble_t) { duty, activity, order, 1, 0, 0, 0 };
    }

    pthread_mutex_unlock(&skd_troubles_mutex);

    if (say) {
        skd_trouble_say(&trouble, order_no, error);
    }
}


int
skd_trouble_aside(skd_duty_e duty, uint64_t activity)
{
    int             aside;
    skd_trouble_t  *trouble;

    pthread_mutex_lock(&skd_troubles_mutex);

    trouble = skd_trouble_find(duty, activity, 0);
    aside = trouble != NULL && trouble->next_ms > skd_now_ms();

    pthread_mutex_unlock(&skd_troubles_mutex);

    return aside;
}


int
skd_trouble_room(void)
{
    int  room;

    pthread_mutex_lock(&skd_troubles_mutex);
    room = skd_troubles_count < SKD_TROUBLES_MAX;
    pthread_mutex_unlock(&skd_troubles_mutex);

    return room;
}


/* The caller holds the mutex. */
static void
skd_trouble_drop(skd_trouble_t *trouble)
{
    *trouble = skd_troubles[--skd_troubles_count];
}


static void
skd_trouble_say_over(const skd_trouble_t *trouble)
{
    if (trouble->said_ms != 0) {
        skb_log(SKB_NOTICE, "keeper does its duty again",
                "duty=%s activity=%" PRIu64 " order_id=%" PRIu64, skd_duty_name(trouble->duty),
                trouble->activity, trouble->order);
    }
}


void
skd_trouble_over(skd_duty_e duty, uint64_t activity, uint64_t order)
{
    skd_trouble_t  *trouble, over;

    over.said_ms = 0;
    pthread_mutex_lock(&skd_troubles_mutex);

    trouble = skd_trouble_find(duty, activity, order);

    if (trouble != NULL) {
        over = *trouble;
        skd_trouble_drop(trouble);
    }

    pthread_mutex_unlock(&skd_troubles_mutex);
    skd_trouble_say_over(&over);
}


void
skd_troubles_sweep(void)
{
    size_t         i = 0;
    int64_t        now = skd_now_ms();
    skd_trouble_t  over;

    pthread_mutex_lock(&skd_troubles_mutex);

    while (i < skd_troubles_count) {
        if (now - skd_troubles[i].next_ms < SKD_TROUBLE_GONE_MS + skd_troubles[i].delay_ms) {
            i++;
            continue;
        }

        over = skd_troubles[i];
        skd_trouble_drop(&skd_troubles[i]);

        pthread_mutex_unlock(&skd_troubles_mutex);
        skd_trouble_say_over(&over);
        pthread_mutex_lock(&skd_troubles_mutex);
    }

    pthread_mutex_unlock(&skd_troubles_mutex);
}


size_t
skd_troubles_get(skd_trouble_t *troubles)
{
    size_t  n;

    pthread_mutex_lock(&skd_troubles_mutex);

    n = skd_troubles_count;
    memcpy(troubles, skd_troubles, n * sizeof(skd_trouble_t));

    pthread_mutex_unlock(&skd_troubles_mutex);

    return n;
}


size_t
skd_troubles_told(skd_trouble_t *troubles)
{
    size_t  n = skd_troubles_get(troubles), told = 0;

    for (size_t i = 0; i < n; i++) {
        if (troubles[i].said_ms != 0) {
            troubles[told++] = troubles[i];
        }
    }

    return told;
}
