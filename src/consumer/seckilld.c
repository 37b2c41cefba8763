/*
 * seckilld: makes orders in MySQL out of the purchases that nginx accepted
 * into Redis, and tells the buyers.  main() owns options, signals, and the
 * order of start and stop; the work is done by the threads of skd_service.
 *
 * No signal interrupts the work: every thread blocks them all, and main()
 * fetches them one by one.
 */

#include <errno.h>
#include <getopt.h>
#include <hiredis/hiredis.h>
#include <mysql.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "skb_config.h"
#include "skb_log.h"
#include "skd.h"
#include "skd_failpoint.h"
#include "skd_notify.h"
#include "skd_service.h"

#define SKD_CONF_PATH  "/etc/seckill/seckilld.conf"

/* 0.1.0 cancelled them after 15 minutes, also those of shops that never set status 2 */
#define SKD_NEVER_CANCELS  "[consumer] \"pay_timeout\" is not set: unpaid orders are never cancelled"

/* The way the daemon ends; documented by --help. */
enum {
    SKD_EXIT_FINE = 0,
    SKD_EXIT_CONFIG = 1,
    SKD_EXIT_USAGE = 2,
    SKD_EXIT_SYSTEM = 3
};

typedef struct {
    const char  *conf_path;
    int          test;                  /* -t */
} skd_options_t;

static skb_config_t  skd_config;
static skb_config_t  skd_next;          /* being read */

static const char  skd_help[] =
    "Usage: seckilld [-c FILE] [-t]\n"
    "\n"
    "Makes orders in MySQL out of accepted purchases in Redis.  Runs in the\n"
    "foreground and logs to standard error, one line of key=value pairs each.\n"
    "\n"
    "  -c, --config=FILE  settings (default " SKD_CONF_PATH ")\n"
    "  -t, --test         test the settings and exit\n"
    "      --version      print the version and exit\n"
    "  -h, --help         print this and exit\n"
    "\n"
    "Signals: TERM and INT finish the current batch and exit.  HUP reads the\n"
    "settings again; when they are wrong the old ones stay.  USR1 opens the log\n"
    "file again.\n"
    "\n"
    "Exit codes:\n"
    "  0  told to stop, or -t found the settings good\n"
    "  1  the settings are wrong\n"
    "  2  misuse of the command line or of SECKILLD_FAILPOINT\n"
    "  3  the system gives no memory or no thread\n"
    "A server that is down or refuses us is no reason to exit: seckilld waits.\n";


static void
skd_print_version(void)
{
    printf("seckilld %s (hiredis %d.%d.%d, MySQL client %s)\n", SECKILL_VERSION,
           HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH, mysql_get_client_info());
}


/* Returns -1 to go on, or the exit code. */
static int
skd_parse_options(skd_options_t *options, int argc, char **argv)
{
    int                         option;
    static const struct option  longs[] = {
        { "config",  required_argument, NULL, 'c' },
        { "test",    no_argument,       NULL, 't' },
        { "version", no_argument,       NULL, 'V' },
        { "help",    no_argument,       NULL, 'h' },
        { NULL,      0,                 NULL, 0 }
    };

    options->conf_path = SKD_CONF_PATH;
    options->test = 0;

    while ((option = getopt_long(argc, argv, "c:th", longs, NULL)) != -1) {
        switch (option) {
        case 'c':
            options->conf_path = optarg;
            break;
        case 't':
            options->test = 1;
            break;
        case 'V':
            skd_print_version();
            return SKD_EXIT_FINE;
        case 'h':
            fputs(skd_help, stdout);
            return SKD_EXIT_FINE;
        default:
            fputs("Try \"seckilld --help\".\n", stderr);
            return SKD_EXIT_USAGE;
        }
    }

    if (optind < argc) {
        fprintf(stderr, "seckilld: unexpected argument \"%s\"\n", argv[optind]);
        return SKD_EXIT_USAGE;
    }

    return -1;
}


/* Also opens a log file anew, after somebody has moved it away. */
static void
skd_apply_log(void)
{
    int  rc = skb_log_file(skd_config.log_file);

    skb_log_level(skd_config.log_level);

    if (rc != 0) {
        skb_log(SKB_ERROR, "log file can't be opened, lines go where they went",
                "file=%s error=\"%s\"", skd_config.log_file, strerror(rc));
    }
}


/* Returns -1 to go on, or the exit code. */
static int
skd_read_config(const skd_options_t *options)
{
    char  error[SKB_ERROR_MAX], quoted[SKB_ERROR_MAX];

    if (skb_config_load(&skd_config, options->conf_path, error, sizeof(error)) != 0) {
        fprintf(stderr, "seckilld: %s\n", error);
        return SKD_EXIT_CONFIG;
    }

    if (options->test) {
        if (skd_config.warning[0] != '\0') {
            fprintf(stderr, "seckilld: warning: %s\n", skd_config.warning);
        }

        if (!skd_config.consumer.pay_timeout_given) {
            fputs("seckilld: note: " SKD_NEVER_CANCELS "\n", stderr);
        }

        fprintf(stderr, "seckilld: %s is fine\n", options->conf_path);
        return SKD_EXIT_FINE;
    }

    skd_apply_log();

    if (skd_config.warning[0] != '\0') {
        skb_log(SKB_WARN, "settings", "warning=%s",
                skb_log_quote(quoted, sizeof(quoted), skd_config.warning));
    }

    if (!skd_config.consumer.pay_timeout_given) {
        skb_log_msg(SKB_INFO, SKD_NEVER_CANCELS);
    }

    return -1;
}


/* Threads started from here on inherit the mask. */
static void
skd_take_signals(sigset_t *signals)
{
    sigset_t  all;

    signal(SIGPIPE, SIG_IGN);

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);

    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1);
}


/* A bad file changes nothing; a good one takes over between two batches. */
static int
skd_reload(const skd_options_t *options)
{
    char  error[SKB_ERROR_MAX], quoted[SKB_ERROR_MAX];

    if (skb_config_load(&skd_next, options->conf_path, error, sizeof(error)) != 0) {
        skb_log(SKB_ERROR, "settings are wrong, the old ones stay", "error=%s",
                skb_log_quote(quoted, sizeof(quoted), error));
        return 0;
    }

    if (skb_config_same(&skd_next, &skd_config)) {
        skb_log_msg(SKB_DEBUG, "settings are the same");
        return 0;
    }

    skd_notify("RELOADING=1");
    skd_service_stop();
    memcpy(&skd_config, &skd_next, sizeof(skd_config));
    skd_apply_log();

    if (skd_service_start(&skd_config) != 0) {
        return -1;
    }

    skb_log(SKB_NOTICE, "settings are in use", "file=%s workers=%u batch=%u",
            skb_log_quote(quoted, sizeof(quoted), options->conf_path),
            skd_config.consumer.workers, skd_config.consumer.batch);
    skd_notify("READY=1");

    return 0;
}


/* The next signal, or 0 when it is time to tell the watchdog. */
static int
skd_wait_signal(const sigset_t *signals, uint64_t watchdog_us)
{
    int              number;
    struct timespec  wait;

    if (watchdog_us == 0) {
        number = sigwaitinfo(signals, NULL);

    } else {
        wait.tv_sec = (time_t) (watchdog_us / 3 / 1000000);
        wait.tv_nsec = (long) (watchdog_us / 3 % 1000000) * 1000;
        number = sigtimedwait(signals, NULL, &wait);
    }

    return number > 0 ? number : 0;
}


/* Until TERM or INT; returns the signal, or 0 when threads could not start again. */
static int
skd_serve(const skd_options_t *options, const sigset_t *signals)
{
    int       number;
    uint64_t  watchdog_us = skd_notify_watchdog();

    for ( ;; ) {
        if (watchdog_us > 0 && skd_service_healthy()) {
            skd_notify("WATCHDOG=1");
        }

        number = skd_wait_signal(signals, watchdog_us);

        switch (number) {

        case SIGTERM:
        case SIGINT:
            return number;

        case SIGHUP:
            if (skd_reload(options) != 0) {
                return 0;
            }

            break;

        case SIGUSR1:
            skd_apply_log();
            break;

        default:
            break;
        }
    }
}


int
main(int argc, char **argv)
{
    int            rc, number;
    sigset_t       signals;
    skd_options_t  options;

    skd_take_signals(&signals);
    rc = skd_parse_options(&options, argc, argv);

    if (rc != -1) {
        return rc;
    }

    rc = skd_read_config(&options);

    if (rc != -1) {
        return rc;
    }

    if (skd_failpoint_init() != 0) {
        fputs("seckilld: SECKILLD_FAILPOINT is not understood\n", stderr);
        return SKD_EXIT_USAGE;
    }

    if (mysql_library_init(0, NULL, NULL) != 0 || skd_service_start(&skd_config) != 0) {
        skb_log_msg(SKB_ERROR, "seckilld can't start");
        return SKD_EXIT_SYSTEM;
    }

    skb_log(SKB_NOTICE, "seckilld is up", "version=%s hiredis=%d.%d.%d mysql_client=%s "
            "workers=%u batch=%u pid=%d", SECKILL_VERSION, HIREDIS_MAJOR, HIREDIS_MINOR,
            HIREDIS_PATCH, mysql_get_client_info(), skd_config.consumer.workers,
            skd_config.consumer.batch, (int) getpid());

    skd_notify("READY=1");
    number = skd_serve(&options, &signals);
    skd_notify("STOPPING=1");
    skb_log(SKB_NOTICE, "seckilld stops", "signal=%d", number);

    if (number != 0) {
        skd_service_stop();
    }

    mysql_library_end();
    skb_log_msg(SKB_NOTICE, "seckilld is down");

    return number != 0 ? SKD_EXIT_FINE : SKD_EXIT_SYSTEM;
}
