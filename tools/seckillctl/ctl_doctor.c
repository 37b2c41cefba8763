/*
 * doctor: the pre-launch checklist.  Each line is ok, warning or wrong, with
 * what to do; the checks themselves are in ctl_doctor_*.c.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl_activities.h"
#include "ctl_doctor.h"
#include "ctl_lost.h"
#include "ctl_backend.h"
#include "ctl_text.h"
#include "sk_id.h"
#include "skb_clock_trust.h"

#define CTL_SKEW_MS      200            /* worth a line */
#define CTL_SKEW_BAD_MS  1000           /* buyers would see it */
#define CTL_USED         70             /* percent of the connections a server takes */
#define CTL_USED_BAD     90

enum {
    CTL_OPT_STATUS = CTL_OPT,
    CTL_OPT_USERS,
    CTL_OPT_NGINX_USER,
    CTL_OPT_SECKILLD_USER
};

static const char *const  ctl_doctor_levels[] = { "ok", "warning", "wrong" };


void
ctl_doctor_tell(ctl_doctor_t *doctor, ctl_level_e level, const char *check, const char *cure,
    const char *fmt, ...)
{
    char     found[CTL_MESSAGE_MAX];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(found, sizeof(found), fmt, args);
    va_end(args);

    doctor->n[level]++;

    if (!doctor->ctl->json) {
        if (doctor->title[0]) {
            puts(doctor->title);
            doctor->title[0] = '\0';
        }

        printf("  %-8s %-16s %s\n", ctl_doctor_levels[level], check, ctl_shown(found));

        if (level != CTL_IS_OK) {
            printf("  %-8s %-16s -> %s\n", "", "", cure);
        }

        return;
    }

    ctl_json_map(&doctor->json, NULL);

    if (doctor->activity) {
        ctl_json_id(&doctor->json, "activity", doctor->activity);
    } else {
        ctl_json_text(&doctor->json, "activity", NULL);
    }

    ctl_json_text(&doctor->json, "check", check);
    ctl_json_text(&doctor->json, "level", ctl_doctor_levels[level]);
    ctl_json_text(&doctor->json, "found", found);
    ctl_json_text(&doctor->json, "do", level == CTL_IS_OK ? NULL : cure);
    ctl_json_map_end(&doctor->json);
}


int64_t
ctl_doctor_now_us(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_REALTIME, &now);

    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}


int64_t
ctl_doctor_now(void)
{
    return ctl_doctor_now_us() / 1000;
}


void
ctl_doctor_used(ctl_doctor_t *doctor, const char *cure, uint64_t used, uint64_t max)
{
    ctl_doctor_tell(doctor, used * 100 >= max * CTL_USED_BAD ? CTL_IS_WRONG
                    : used * 100 >= max * CTL_USED ? CTL_IS_WARNING : CTL_IS_OK, "connections",
                    cure, "%" PRIu64 " of at most %" PRIu64, used, max);
}


void
ctl_doctor_clock(ctl_doctor_t *doctor, const char *check, int64_t began_ms, int64_t ended_ms,
    int64_t ms)
{
    int64_t  skew;

    /* what the way there and back may have taken is no skew */
    skew = ms < began_ms - 1 ? ms - began_ms : ms > ended_ms + 1 ? ms - ended_ms : 0;

    ctl_doctor_tell(doctor, llabs(skew) > CTL_SKEW_BAD_MS ? CTL_IS_WRONG
                    : llabs(skew) > CTL_SKEW_MS ? CTL_IS_WARNING : CTL_IS_OK, check,
                    "let NTP set the clocks of all hosts; Redis' one opens the sale",
                    "%+" PRId64 " ms from this host's clock", skew);
}


/* Nothing that can't be taken back is done while these two differ. */
static void
ctl_doctor_clocks(ctl_doctor_t *doctor)
{
    char                 why[CTL_MESSAGE_MAX];
    skb_clocks_t         clocks;
    skb_clock_reading_t  readings[SKB_CLOCKS];

    memset(&clocks, 0, sizeof(clocks));
    why[0] = '\0';

    if (skb_clock_read_redis(ctl_redis_context(doctor->ctl), &readings[SKB_CLOCK_REDIS], why,
                             sizeof(why)) == SKB_REDIS_FINE
        && skb_clock_read_mysql(ctl_mysql(doctor->ctl), &readings[SKB_CLOCK_MYSQL], why,
                                sizeof(why)) == SKB_MYSQL_FINE)
    {
        skb_clocks_note(&clocks, readings);
    }

    switch (skb_clocks_judge(&clocks, skb_boot_ms(), 0, 0)) {

    case SKB_CLOCKS_FINE:
        ctl_doctor_tell(doctor, CTL_IS_OK, "clocks", "", "Redis' is %+" PRId64 " ms from MySQL's",
                        clocks.skew_ms);
        break;

    case SKB_CLOCKS_SKEW:
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "clocks", "let NTP set the clocks of both hosts: "
                        "until they agree nothing is settled or cancelled", "Redis' is %+" PRId64
                        " ms from MySQL's", clocks.skew_ms);
        break;

    default:
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "clocks", "look at the network and the load: "
                        "nothing is settled by clocks that are not known", "not known, %s",
                        why[0] ? why : "an answer took too long");
    }
}


static int
ctl_doctor_one(ctl_doctor_t *doctor, uint64_t activity)
{
    int  rc;

    doctor->activity = activity;
    snprintf(doctor->title, sizeof(doctor->title), "activity %" PRIu64, activity);
    rc = ctl_doctor_sale(doctor, activity);
    doctor->activity = 0;

    return rc;
}


static int
ctl_doctor_sales(ctl_doctor_t *doctor)
{
    int                rc;
    size_t             i;
    ctl_activities_t   activities;

    rc = ctl_activities_read(doctor->ctl, &activities);

    /* what Redis lost is not in its list */
    if (rc == CTL_FINE) {
        rc = ctl_activities_opened(doctor->ctl, &activities);
    }

    for (i = 0; rc == CTL_FINE && i < activities.n; i++) {
        rc = ctl_doctor_one(doctor, activities.ids[i]);
    }

    ctl_activities_free(&activities);

    return rc;
}


/* a server that does not answer leaves the rest worth knowing */
static int
ctl_doctor_all(ctl_doctor_t *doctor, uint64_t one)
{
    int  rc, redis, mysql;

    strcpy(doctor->title, "this host");

    rc = ctl_doctor_host(doctor);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_doctor_nginx(doctor);

    strcpy(doctor->title, "Redis");
    redis = ctl_doctor_redis(doctor);

    strcpy(doctor->title, "MySQL");
    mysql = ctl_doctor_mysql(doctor);

    if (redis != CTL_FINE || mysql != CTL_FINE) {
        return redis != CTL_FINE ? redis : mysql;
    }

    ctl_doctor_clocks(doctor);

    return doctor->all ? ctl_doctor_sales(doctor) : ctl_doctor_one(doctor, one);
}


/* Returns 0, or -1: stop and return ctl->exit. */
static int
ctl_doctor_options(ctl_doctor_t *doctor, int argc, char **argv)
{
    int     opt;
    ctl_t  *ctl;

    static const struct option  options[] = {
        { "status",        required_argument, NULL, CTL_OPT_STATUS },
        { "users",         required_argument, NULL, CTL_OPT_USERS },
        { "nginx-user",    required_argument, NULL, CTL_OPT_NGINX_USER },
        { "seckilld-user", required_argument, NULL, CTL_OPT_SECKILLD_USER },
        CTL_OPTIONS
    };

    ctl = doctor->ctl;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        switch (opt) {
        case CTL_OPT_STATUS:
            if (doctor->nstatus == CTL_NODES_MAX) {
                ctl->exit = ctl_usage(ctl, "at most %d --status", CTL_NODES_MAX);
                return -1;
            }

            doctor->status[doctor->nstatus++] = optarg;
            break;

        case CTL_OPT_USERS:
            if (ctl_number(optarg, 1, UINT32_MAX, &doctor->users) != 0) {
                ctl->exit = ctl_usage(ctl, "--users takes a number, not \"%s\"", optarg);
                return -1;
            }

            break;

        case CTL_OPT_NGINX_USER:
            doctor->nginx_user = optarg;
            break;

        case CTL_OPT_SECKILLD_USER:
            doctor->seckilld_user = optarg;
            break;

        default:
            return -1;
        }
    }

    return 0;
}


static int
ctl_doctor_run(ctl_t *ctl, int argc, char **argv)
{
    int           rc;
    uint64_t      activity;
    ctl_doctor_t  doctor;

    memset(&doctor, 0, sizeof(doctor));
    doctor.ctl = ctl;

    if (ctl_doctor_options(&doctor, argc, argv) != 0) {
        return ctl->exit;
    }

    activity = 0;
    doctor.all = argc == optind;

    if (argc - optind > 1) {
        return ctl_usage(ctl, "one activity, or none for all of them");
    }

    if (argc - optind == 1 && sk_id_parse(argv[optind], strlen(argv[optind]), &activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    if (ctl->json) {
        ctl_json_begin(ctl, &doctor.json);
        ctl_json_map(&doctor.json, NULL);
        ctl_json_array(&doctor.json, "checks");
    }

    rc = ctl_doctor_all(&doctor, activity);

    if (!ctl->json) {
        printf("%zu ok, %zu warnings, %zu wrong%s\n", doctor.n[CTL_IS_OK],
               doctor.n[CTL_IS_WARNING], doctor.n[CTL_IS_WRONG],
               rc == CTL_FINE ? "" : "; not everything could be looked at");

    } else {
        ctl_json_array_end(&doctor.json);
        ctl_json_count(&doctor.json, "ok", doctor.n[CTL_IS_OK]);
        ctl_json_count(&doctor.json, "warnings", doctor.n[CTL_IS_WARNING]);
        ctl_json_count(&doctor.json, "wrong", doctor.n[CTL_IS_WRONG]);
        ctl_json_error(&doctor.json, ctl);
        ctl_json_map_end(&doctor.json);

        if (ctl_json_end(&doctor.json) != 0 && rc == CTL_FINE) {
            rc = CTL_PARTLY;
        }
    }

    return rc == CTL_FINE && doctor.n[CTL_IS_WRONG] ? CTL_NO : rc;
}


const ctl_verb_t  ctl_doctor_verb = {
    "doctor",
    "[ID] [--status URL ...] [--users N] [--nginx-user NAME] [--seckilld-user NAME]",
    "the checklist before a sale: what is ok, and what to do",
    "Looks at this host, seckilld, the nodes, Redis, MySQL and the sale, or all sales that\n"
    "are not over.  Each line is ok, warning or wrong, and says what to do.  Exit 0 when\n"
    "nothing is wrong (warnings are fine), 1 when something is, 3 when a server does not\n"
    "answer.\n"
    "\n"
    "Changes nothing.  Before the start of a sale a batch of orders is inserted, timed and\n"
    "rolled back, which leaves a gap in the ids of orders; while it runs, seckilld's own\n"
    "figures tell the rate.\n"
    "\n"
    "      --status URL          of a node's seckill_status, once per node: zone, limits,\n"
    "                            clock, and whether it is public\n"
    "      --users N             how many are expected, for the zone and connections\n"
    "      --nginx-user NAME     the nodes' user in Redis, to look at its rights\n"
    "      --seckilld-user NAME  that of seckilld, if these settings are not its own\n",
    ctl_doctor_run
};
