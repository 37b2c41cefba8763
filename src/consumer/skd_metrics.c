/*
 * The text of Prometheus: counters and latencies of skd_stats, the backlog as
 * the keeper saw it.
 */

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "skd.h"
#include "skd_clocks.h"
#include "skd_http.h"
#include "skd_promise.h"
#include "skd_stats.h"
#include "skd_trouble.h"

typedef struct {
    const char  *metric;
    const char  *labels;
    const char  *help;                  /* NULL: the same metric as the one before */
} skd_count_name_t;

static const skd_count_name_t  skd_count_names[SKD_COUNTS] = {
#define SKD_COUNT(name, metric, labels, help)  { metric, labels, help },
#include "skd_counts_x.h"
#undef SKD_COUNT
};


static void
skd_metrics_head(FILE *out, const char *metric, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}


static void
skd_metrics_counts(FILE *out)
{
    for (int i = 0; i < SKD_COUNTS; i++) {
        const skd_count_name_t  *name = &skd_count_names[i];

        if (name->help != NULL) {
            skd_metrics_head(out, name->metric, "counter", name->help);
        }

        fprintf(out, "%s%s %" PRIu64 "\n", name->metric, name->labels,
                skd_counted((skd_count_e) i));
    }
}


static void
skd_metrics_histogram(FILE *out, skd_time_e time, const char *metric, const char *help)
{
    uint64_t  buckets[SKD_TIME_BUCKETS], sum_us, n = 0;

    skd_times(time, buckets, &sum_us);
    skd_metrics_head(out, metric, "histogram", help);

    for (size_t i = 0; i < SKD_TIME_BUCKETS; i++) {
        n += buckets[i];

        if (i < SKD_TIME_BUCKETS - 1) {
            fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", metric, skd_time_bound(i), n);
        } else {
            fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", metric, n);
        }
    }

    fprintf(out, "%s_sum %.6f\n%s_count %" PRIu64 "\n", metric, (double) sum_us / 1e6, metric,
            n);
}


static int64_t
skd_backlog_value(const skd_backlog_t *backlog, size_t which)
{
    const int64_t  values[] = { backlog->unread, backlog->pending, backlog->dead,
                                backlog->oldest_ms };

    return values[which];
}


/* What is not known is not shown. */
static void
skd_metrics_backlogs(FILE *out, const skd_backlog_t *backlogs, size_t n, int64_t activities)
{
    static const char *const  names[][2] = {
        { "seckilld_unread", "Purchases that no consumer has read." },
        { "seckilld_pending", "Purchases read and not settled." },
        { "seckilld_dead_letters", "Dead letters that are open." },
        { "seckilld_oldest_age_seconds", "Age of the oldest purchase not settled." }
    };

    skd_metrics_head(out, "seckilld_activities", "gauge", "Activities registered in Redis.");

    if (activities >= 0) {
        fprintf(out, "seckilld_activities %" PRId64 "\n", activities);
    }

    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        skd_metrics_head(out, names[k][0], "gauge", names[k][1]);

        for (size_t i = 0; i < n; i++) {
            int64_t  value = skd_backlog_value(&backlogs[i], k);

            if (value < 0) {
                continue;
            }

            fprintf(out, "%s{activity=\"%" PRIu64 "\"} ", names[k][0], backlogs[i].activity);

            if (k == 3) {
                fprintf(out, "%.3f\n", (double) value / 1e3);
            } else {
                fprintf(out, "%" PRId64 "\n", value);
            }
        }
    }
}


/* Of each duty and activity: a thing that is put aside, or an order of it. */
static void
skd_metrics_troubles(FILE *out)
{
    size_t         n, same;
    skd_trouble_t  troubles[SKD_TROUBLES_MAX];

    n = skd_troubles_told(troubles);
    skd_metrics_head(out, "seckilld_troubles", "gauge",
                     "What the keeper can't do at the moment, activity 0: for all.");

    for (size_t i = 0; i < n; i++) {
        if (troubles[i].tries == 0) {
            continue;                   /* shown with an earlier one */
        }

        same = 0;

        for (size_t k = i; k < n; k++) {
            if (troubles[k].duty == troubles[i].duty
                && troubles[k].activity == troubles[i].activity)
            {
                same++;
                troubles[k].tries = k == i ? troubles[k].tries : 0;
            }
        }

        fprintf(out, "seckilld_troubles{duty=\"%s\",activity=\"%" PRIu64 "\"} %zu\n",
                skd_duty_name(troubles[i].duty), troubles[i].activity, same);
    }
}


/* nothing while it is not known */
static void
skd_metrics_misses(FILE *out)
{
    int64_t  n[SKD_MISSES];

    if (!skd_misses_get(n)) {
        return;
    }

    skd_metrics_head(out, "seckilld_sales_not_whole", "gauge",
                     "Sales that miss something in Redis, by what.");

    for (int i = 0; i < SKD_MISSES; i++) {
        fprintf(out, "seckilld_sales_not_whole{missing=\"%s\"} %" PRId64 "\n",
                skd_miss_name((skd_miss_e) i), n[i]);
    }
}


static void
skd_metrics_clocks(FILE *out, const skb_config_t *config)
{
    skb_clocks_t  clocks;

    skd_clocks_get(&clocks);
    skd_metrics_head(out, "seckilld_clock_skew_seconds", "gauge",
                     "Redis' clock less MySQL's, when both are known.");

    if (clocks.clock[SKB_CLOCK_REDIS].fresh && clocks.clock[SKB_CLOCK_MYSQL].fresh) {
        fprintf(out, "seckilld_clock_skew_seconds %.3f\n", (double) clocks.skew_ms / 1e3);
    }

    skd_metrics_head(out, "seckilld_clocks_trusted", "gauge",
                     "1 when sales may be settled by the clocks of Redis and MySQL.");
    fprintf(out, "seckilld_clocks_trusted %d\n", skd_clocks_may_settle(config));
}


static void
skd_metrics_gauges(FILE *out)
{
    skd_metrics_head(out, "seckilld_redis_up", "gauge", "1 when no worker waits for Redis.");
    fprintf(out, "seckilld_redis_up %d\n", skd_server_is_up(SKD_SERVER_REDIS));
    skd_metrics_head(out, "seckilld_mysql_up", "gauge", "1 when no worker waits for MySQL.");
    fprintf(out, "seckilld_mysql_up %d\n", skd_server_is_up(SKD_SERVER_MYSQL));
    skd_metrics_head(out, "seckilld_last_success_timestamp_seconds", "gauge",
                     "When purchases were settled last, 0: never.");
    fprintf(out, "seckilld_last_success_timestamp_seconds %.3f\n",
            (double) skd_last_success_ms() / 1e3);
    skd_metrics_head(out, "seckilld_build_info", "gauge", "The version that runs.");
    fprintf(out, "seckilld_build_info{version=\"" SECKILL_VERSION "\"} 1\n");
}


/* by the names that Prometheus' own libraries use */
static void
skd_metrics_files(FILE *out)
{
    DIR            *dir;
    size_t          n = 0;
    struct rlimit   limit;

    dir = opendir("/proc/self/fd");

    if (dir != NULL) {
        for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
            n += entry->d_name[0] != '.';
        }

        closedir(dir);
        skd_metrics_head(out, "process_open_fds", "gauge", "Files that are open.");
        fprintf(out, "process_open_fds %zu\n", n - 1);         /* but for this folder */
    }

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        skd_metrics_head(out, "process_max_fds", "gauge", "Files that may be open.");
        fprintf(out, "process_max_fds %" PRIu64 "\n", (uint64_t) limit.rlim_cur);
    }
}


char *
skd_metrics_text(const skb_config_t *config)
{
    int             failed;
    char           *text = NULL;
    FILE           *out;
    size_t          n, len;
    int64_t         activities;
    skd_backlog_t  *backlogs = calloc(SKD_BACKLOGS_MAX, sizeof(skd_backlog_t));

    out = backlogs != NULL ? open_memstream(&text, &len) : NULL;

    if (out == NULL) {
        free(backlogs);
        return NULL;
    }

    n = skd_backlogs_get(backlogs, &activities);

    skd_metrics_counts(out);
    skd_metrics_histogram(out, SKD_TIME_BATCH, "seckilld_batch_duration_seconds",
                          "From a batch read to a batch settled.");
    skd_metrics_histogram(out, SKD_TIME_COMMIT, "seckilld_commit_duration_seconds",
                          "The COMMIT of a batch.");
    skd_metrics_backlogs(out, backlogs, n, activities);
    skd_metrics_troubles(out);
    skd_metrics_clocks(out, config);
    skd_promise_metrics(out);
    skd_metrics_misses(out);
    skd_metrics_gauges(out);
    skd_metrics_files(out);

    free(backlogs);
    failed = ferror(out);

    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }

    return text;
}
