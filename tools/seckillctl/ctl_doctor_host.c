/*
 * doctor, this host: limits, password files, seckilld's own health.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"
#include "ctl_page.h"

#define CTL_FILES_FEW   1024
#define CTL_FILES_MANY  16384
#define CTL_ORDERS_FEW  100            /* say nothing of a rate */


static void
ctl_doctor_files(ctl_doctor_t *doctor)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "open files", "see \"ulimit -n\"", "%s",
                        strerror(errno));
        return;
    }

    ctl_doctor_tell(doctor, limit.rlim_cur < CTL_FILES_FEW ? CTL_IS_WRONG
                    : limit.rlim_max < CTL_FILES_MANY ? CTL_IS_WARNING : CTL_IS_OK, "open files",
                    "raise nofile of this host, and worker_rlimit_nofile of nginx: a buyer who "
                    "waits needs a file",
                    "ulimit -n is %" PRIu64 ", at most %" PRIu64, (uint64_t) limit.rlim_cur,
                    (uint64_t) limit.rlim_max);
}


static void
ctl_doctor_password(ctl_doctor_t *doctor, const char *check, const char *path)
{
    struct stat  st;

    if (path[0] == '\0') {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, check,
                        "give the server a password, and its file to password_file",
                        "no password file is set");

    } else if (stat(path, &st) != 0) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, check, "make it, mode 0640, group of seckilld",
                        "\"%s\": %s", path, strerror(errno));

    } else {
        ctl_doctor_tell(doctor, (st.st_mode & (S_IRWXO | S_IWGRP)) ? CTL_IS_WRONG : CTL_IS_OK,
                        check, "chmod 0640, and change a password that others could read",
                        "mode of \"%s\" is %04o", path, (unsigned) st.st_mode & 07777);
    }
}


/* what seckilld did so far, for the rate of a sale; and its files */
static void
ctl_doctor_daemon(ctl_doctor_t *doctor, const ctl_page_t *page)
{
    double  open, max, orders, seconds, commits;

    if (ctl_page_figure(page, "process_open_fds", NULL, NULL, &open) == 0
        && ctl_page_figure(page, "process_max_fds", NULL, NULL, &max) == 0)
    {
        ctl_doctor_tell(doctor, open * 2 > max ? CTL_IS_WRONG : open * 4 > max ? CTL_IS_WARNING
                        : CTL_IS_OK, "seckilld files", "LimitNOFILE= of its unit",
                        "%.0f open of at most %.0f", open, max);
    }

    if (page->date_ms >= 0) {
        ctl_doctor_clock(doctor, "seckilld clock", page->began_ms - 1000, page->ended_ms,
                         page->date_ms);
    }

    if (ctl_page_figure(page, "seckilld_purchases_total{result=\"order\"}", NULL, NULL, &orders)
        == 0
        && ctl_page_figure(page, "seckilld_batch_duration_seconds_sum", NULL, NULL, &seconds) == 0
        && orders >= CTL_ORDERS_FEW && seconds > 0)
    {
        doctor->rate = orders / seconds;
    }

    if (ctl_page_figure(page, "seckilld_commit_duration_seconds_sum", NULL, NULL, &seconds) == 0
        && ctl_page_figure(page, "seckilld_commit_duration_seconds_count", NULL, NULL, &commits)
           == 0
        && commits > 0)
    {
        doctor->commit = seconds / commits;
    }
}


static void
ctl_doctor_health(ctl_doctor_t *doctor, const skb_config_t *config)
{
    int         rc;
    char        at[SKB_HOST_MAX + 32], url[SKB_HOST_MAX + 48];
    ctl_page_t  page;

    if (config->http_port == 0) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "seckilld", "set [http] listen, for Prometheus "
                        "too", "[http] listen is off: its health is not known");
        return;
    }

    snprintf(at, sizeof(at), strchr(config->http_host, ':') ? "http://[%s]:%u" : "http://%s:%u",
             config->http_host, config->http_port);
    snprintf(url, sizeof(url), "%s/healthz", at);
    rc = ctl_page_get(&page, url, NULL);

    if (rc != 0) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "seckilld", "start seckilld, look at its log",
                        "%s: %s", url, page.error);
    } else {
        ctl_doctor_tell(doctor, page.status == 200 ? CTL_IS_OK : CTL_IS_WARNING, "seckilld",
                        "look at what /healthz says and at its log", "%s: status %ld", url,
                        page.status);
    }

    ctl_page_free(&page);

    if (rc == 0) {
        snprintf(url, sizeof(url), "%s/metrics", at);

        if (ctl_page_get(&page, url, NULL) == 0) {
            ctl_doctor_daemon(doctor, &page);
        }

        ctl_page_free(&page);
    }
}


int
ctl_doctor_host(ctl_doctor_t *doctor)
{
    int                  rc;
    const skb_config_t  *config;

    rc = ctl_settings(doctor->ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    config = ctl_config(doctor->ctl);

    ctl_doctor_files(doctor);
    ctl_doctor_password(doctor, "Redis password", config->redis.password_file);
    ctl_doctor_password(doctor, "MySQL password", config->mysql.password_file);
    ctl_doctor_health(doctor, config);

    return CTL_FINE;
}
