/*
 * doctor, this host: limits, password files, seckilld's own health.
 */

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"

#define CTL_FILES_FEW   1024
#define CTL_FILES_MANY  16384
#define CTL_HEALTH_MS   2000L


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


static size_t
ctl_doctor_swallow(char *text, size_t size, size_t n, void *data)
{
    (void) text;
    (void) data;

    return size * n;
}


static void
ctl_doctor_health(ctl_doctor_t *doctor, const skb_config_t *config)
{
    char        url[SKB_HOST_MAX + 32];
    CURL       *curl;
    long        status;
    CURLcode    rc;

    if (config->http_port == 0) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "seckilld", "set [http] listen, for Prometheus "
                        "too", "[http] listen is off: its health is not known");
        return;
    }

    snprintf(url, sizeof(url), strchr(config->http_host, ':') ? "http://[%s]:%u/healthz"
             : "http://%s:%u/healthz", config->http_host, config->http_port);

    curl = curl_easy_init();
    status = 0;
    rc = CURLE_FAILED_INIT;

    if (curl) {
        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, CTL_HEALTH_MS);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ctl_doctor_swallow);
        rc = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_cleanup(curl);
    }

    if (rc != CURLE_OK) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "seckilld", "start seckilld, look at its log",
                        "%s: %s", url, curl_easy_strerror(rc));
    } else {
        ctl_doctor_tell(doctor, status == 200 ? CTL_IS_OK : CTL_IS_WRONG, "seckilld",
                        "look at what /healthz says and at its log", "%s: status %ld", url,
                        status);
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
