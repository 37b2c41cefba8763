/*
 * doctor, the nodes: what their status pages say of room and limits, their
 * clocks, and whether the pages answer others than this host.
 */

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "ctl_doctor.h"
#include "ctl_page.h"

#define CTL_CONNECTIONS_FEW  1024
#define CTL_ZONE_USER        160        /* bytes of a user; docs: 16m for 100,000 */
#define CTL_ZONE_FREE        10         /* percent */


static void
ctl_doctor_connections(ctl_doctor_t *doctor, const ctl_page_t *page)
{
    double        connections, files, workers;
    ctl_level_e   level;

    if (ctl_page_figure(page, "seckill_worker_connections", "worker_connections", NULL,
                        &connections) != 0
        || ctl_page_figure(page, "seckill_worker_open_files", "worker_open_files", NULL, &files)
           != 0
        || ctl_page_figure(page, "seckill_workers", "workers", NULL, &workers) != 0)
    {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "nginx limits", "--status wants the address of "
                        "seckill_status, of this version", "the page does not tell");
        return;
    }

    /* workers that have not asked Redis yet are not counted: no crowd is measured with them */
    level = files < connections ? CTL_IS_WRONG
            : connections < CTL_CONNECTIONS_FEW
              || (doctor->users && workers > 0 && connections * workers < (double) doctor->users)
            ? CTL_IS_WARNING : CTL_IS_OK;

    ctl_doctor_tell(doctor, level, "nginx limits", files < connections
                    ? "worker_rlimit_nofile: twice worker_connections"
                    : "worker_connections: a buyer who waits needs one",
                    "%.0f connections and %.0f open files per worker", connections, files);
}


static void
ctl_doctor_zone(ctl_doctor_t *doctor, const ctl_page_t *page)
{
    double       size, free, wanted;
    ctl_level_e  level;

    if (ctl_page_figure(page, "seckill_zone_size_bytes", "zone", "size", &size) != 0
        || ctl_page_figure(page, "seckill_zone_free_bytes", "zone", "free", &free) != 0)
    {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "zone", "--status wants the address of "
                        "seckill_status", "the page does not tell its size");
        return;
    }

    if (doctor->zone == 0 || size < doctor->zone) {
        doctor->zone = size;
    }

    wanted = (double) doctor->users * CTL_ZONE_USER;
    level = size < wanted || free < size * CTL_ZONE_FREE / 100 ? CTL_IS_WARNING : CTL_IS_OK;

    ctl_doctor_tell(doctor, level, "zone", "seckill_zone of another name and 16m for each 100,000 "
                    "users, then a reload; a full one forgets the oldest users",
                    "%.0f KiB, %.0f KiB of them free; %" PRIu64 " users want %.0f KiB",
                    size / 1024, free / 1024, doctor->users, wanted / 1024);
}


/* without it nobody can name what Redis loses */
static void
ctl_doctor_journal(ctl_doctor_t *doctor, const ctl_page_t *page)
{
    int     node;
    double  on, lost, size;

    node = ctl_page_figure(page, "seckill_zone_size_bytes", "zone", "size", &size) == 0;

    if (ctl_page_figure(page, "seckill_journal", "journal", "on", &on) != 0
        || ctl_page_figure(page, "seckill_journal_lost_lines_total", "journal", "lost", &lost)
           != 0)
    {
        ctl_doctor_tell(doctor, node ? CTL_IS_WRONG : CTL_IS_WARNING, "journal", "the module of "
                        "version 1.0, and \"seckill_journal file;\" in its http block",
                        "the page tells of no signed journal");

    } else if (on == 0) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "journal", "\"seckill_journal file;\" in the http "
                        "block of nginx", "it writes none: what Redis loses nobody can name");

    } else {
        ctl_doctor_tell(doctor, lost > 0 ? CTL_IS_WARNING : CTL_IS_OK, "journal",
                        "the disk of the journal; nginx' error log says since when",
                        "%.0f purchases are missing in it", lost);
    }
}


static int
ctl_doctor_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}


/* the text of an address that other hosts may know; 0 when this is none */
static int
ctl_doctor_outside(const struct ifaddrs *one, char *text)
{
    const struct sockaddr_in   *in;
    const struct sockaddr_in6  *in6;

    if (one->ifa_addr == NULL || !(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) {
        return 0;
    }

    if (one->ifa_addr->sa_family == AF_INET) {
        in = (const struct sockaddr_in *) one->ifa_addr;
        return inet_ntop(AF_INET, &in->sin_addr, text, CTL_ADDRESS_MAX) != NULL;
    }

    if (one->ifa_addr->sa_family == AF_INET6) {
        in6 = (const struct sockaddr_in6 *) one->ifa_addr;
        return !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)
               && inet_ntop(AF_INET6, &in6->sin6_addr, text, CTL_ADDRESS_MAX) != NULL;
    }

    return 0;
}


/* who asks one of this host's own addresses comes from that address, not from loopback */
static void
ctl_doctor_public(ctl_doctor_t *doctor, const char *url)
{
    int              rc;
    char             text[CTL_ADDRESS_MAX];
    size_t           tried;
    ctl_page_t       page;
    struct ifaddrs  *all, *one;

    tried = 0;

    if (getifaddrs(&all) != 0) {
        all = NULL;
    }

    for (one = all; one; one = one->ifa_next) {
        if (!ctl_doctor_outside(one, text)) {
            continue;
        }

        tried++;
        rc = ctl_page_get(&page, url, text);
        ctl_page_free(&page);

        if (rc == 0 && page.status < 300) {
            ctl_doctor_tell(doctor, CTL_IS_WARNING, "status page", "\"allow 127.0.0.1; deny "
                            "all;\" in its location, and whom your monitoring comes from",
                            "%s answers to %s too", url, text);
            break;
        }
    }

    if (tried == 0) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "status page", "ask for it from another host",
                        "this host has no address but loopback to ask from");

    } else if (one == NULL) {
        ctl_doctor_tell(doctor, CTL_IS_OK, "status page", "", "refused to the %zu other "
                        "addresses of this host", tried);
    }

    if (all) {
        freeifaddrs(all);
    }
}


static void
ctl_doctor_node(ctl_doctor_t *doctor, const char *url)
{
    ctl_page_t  page;

    snprintf(doctor->title, sizeof(doctor->title), "nginx %s", url);

    if (ctl_page_get(&page, url, NULL) != 0) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "status page", "start nginx; is the address right?",
                        "%s: %s", url, page.error);

    } else if (page.status != 200) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "status page", "allow this host to read it; is the "
                        "address right?", "%s: status %ld", url, page.status);

    } else {
        if (page.date_ms >= 0) {
            ctl_doctor_clock(doctor, "clock", page.began_ms - 1000, page.ended_ms, page.date_ms);
        }

        ctl_doctor_connections(doctor, &page);
        ctl_doctor_zone(doctor, &page);
        ctl_doctor_journal(doctor, &page);

        if (ctl_doctor_loopback(page.address)) {
            ctl_doctor_public(doctor, url);
        }
    }

    ctl_page_free(&page);
}


void
ctl_doctor_nginx(ctl_doctor_t *doctor)
{
    size_t  i;

    for (i = 0; i < doctor->nstatus; i++) {
        ctl_doctor_node(doctor, doctor->status[i]);
    }

    if (doctor->nstatus == 0) {
        strcpy(doctor->title, "nginx");
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "status page", "doctor --status URL, for each node",
                        "zone, limits and clock of the nodes were not looked at");
    }
}
