/*
 * seckilld: makes orders in MySQL out of the purchases that nginx accepted
 * into Redis, and tells the buyers.  main() owns options, signals, and the
 * order of start and stop; the work is done by skd_worker.
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
#include "skd_failpoint.h"
#include "skd_notify.h"
#include "skd_stop.h"
#include "skd_worker.h"

#define SKD_CONF_PATH  "/etc/seckill/seckilld.conf"

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
static skd_worker_t  skd_workers[SKB_WORKERS_MAX];

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
    "Signals: TERM and INT finish the current batch and exit.  HUP and USR1 are\n"
    "ignored.\n"
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

        fprintf(stderr, "seckilld: %s is fine\n", options->conf_path);
        return SKD_EXIT_FINE;
    }

    skb_log_level(skd_config.log_level);

    if (skd_config.warning[0] != '\0') {
        skb_log(SKB_WARN, "settings", "warning=%s",
                skb_log_quote(quoted, sizeof(quoted), skd_config.warning));
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


/* Returns how many run, which is less than asked for only after a line in the log. */
static unsigned
skd_start_workers(skd_stop_t *stop)
{
    int       rc;
    unsigned  n;

    for (n = 0; n < skd_config.consumer.workers; n++) {
        rc = skd_worker_start(&skd_workers[n], n + 1, &skd_config, stop);

        if (rc != 0) {
            skb_log(SKB_ERROR, "worker can't start", "worker=%u error=\"%s\"", n + 1,
                    strerror(rc));
            break;
        }
    }

    return n;
}


/* Until TERM or INT; returns the signal. */
static int
skd_wait_for_end(const sigset_t *signals)
{
    int  number;

    for ( ;; ) {
        number = sigwaitinfo(signals, NULL);

        if (number == SIGTERM || number == SIGINT) {
            return number;
        }
    }
}


int
main(int argc, char **argv)
{
    int            rc, number;
    unsigned       workers;
    sigset_t       signals;
    skd_stop_t     stop;
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

    if (mysql_library_init(0, NULL, NULL) != 0 || skd_stop_init(&stop) != 0) {
        skb_log_msg(SKB_ERROR, "out of memory");
        return SKD_EXIT_SYSTEM;
    }

    workers = skd_start_workers(&stop);
    rc = workers == skd_config.consumer.workers ? SKD_EXIT_FINE : SKD_EXIT_SYSTEM;

    if (rc == SKD_EXIT_FINE) {
        skb_log(SKB_NOTICE, "seckilld is up", "version=%s hiredis=%d.%d.%d mysql_client=%s "
                "workers=%u batch=%u pid=%d", SECKILL_VERSION, HIREDIS_MAJOR, HIREDIS_MINOR,
                HIREDIS_PATCH, mysql_get_client_info(), workers, skd_config.consumer.batch,
                (int) getpid());

        skd_notify("READY=1");
        number = skd_wait_for_end(&signals);
        skd_notify("STOPPING=1");
        skb_log(SKB_NOTICE, "seckilld stops", "signal=%d", number);
    }

    skd_stop_all(&stop);

    while (workers > 0) {
        skd_worker_join(&skd_workers[--workers]);
    }

    skd_stop_done(&stop);
    mysql_library_end();
    skb_log_msg(SKB_NOTICE, "seckilld is down");

    return rc;
}
