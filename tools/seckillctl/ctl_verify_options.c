/*
 * The command line of verify.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "ctl_verify.h"
#include "sk_id.h"
#include "sk_purchase.h"

enum {
    CTL_OPT_URL = CTL_OPT_AFTER_MINTER,
    CTL_OPT_USERS,
    CTL_OPT_REQUESTS,
    CTL_OPT_CONCURRENCY,
    CTL_OPT_FIRST_USER,
    CTL_OPT_QUANTITY,
    CTL_OPT_SEED,
    CTL_OPT_TIMEOUT,
    CTL_OPT_NO_WAIT,
    CTL_OPT_CACERT,
    CTL_OPT_INSECURE
};


/*
 * "http://host/prefix", or as nginx writes a unix socket: "unix:/path:/prefix",
 * with http:// or https:// before it when wanted.
 */
static int
ctl_verify_url(ctl_verify_t *verify, const char *text)
{
    int          n;
    const char  *scheme, *rest, *colon;

    scheme = "http://";
    rest = text;

    if (strncmp(text, "http://", 7) == 0) {
        rest += 7;

    } else if (strncmp(text, "https://", 8) == 0) {
        scheme = "https://";
        rest += 8;

    } else if (strncmp(text, "unix:", 5) != 0) {
        return -1;
    }

    if (strncmp(rest, "unix:", 5) == 0) {
        rest += 5;
        colon = strchrnul(rest, ':');

        if (colon == rest || (size_t) (colon - rest) >= sizeof(verify->socket)) {
            return -1;
        }

        snprintf(verify->socket, sizeof(verify->socket), "%.*s", (int) (colon - rest), rest);
        n = snprintf(verify->url, sizeof(verify->url), "%slocalhost%s", scheme,
                     *colon ? colon + 1 : "");
    } else {
        n = snprintf(verify->url, sizeof(verify->url), "%s%s", scheme, rest);
    }

    if (n < 0 || (size_t) n >= sizeof(verify->url) || strpbrk(verify->url, "?# ") != NULL) {
        return -1;
    }

    while (n > 0 && verify->url[n - 1] == '/') {
        verify->url[--n] = '\0';
    }

    return 0;
}


/* Returns 0, or -1: the option's argument makes no sense. */
static int
ctl_verify_option(ctl_verify_t *verify, int opt, const char *arg)
{
    switch (opt) {

    case CTL_OPT_URL:
        return ctl_verify_url(verify, arg);

    case CTL_OPT_USERS:
        return ctl_number(arg, 1, CTL_CROWD_USERS_MAX, &verify->nusers);

    case CTL_OPT_REQUESTS:
        return ctl_number(arg, 1, CTL_CROWD_REQUESTS_MAX, &verify->requests);

    case CTL_OPT_CONCURRENCY:
        return ctl_number(arg, 1, CTL_CROWD_CONCURRENCY_MAX, &verify->concurrency);

    case CTL_OPT_FIRST_USER:
        return sk_id_parse(arg, strlen(arg), &verify->first_user);

    case CTL_OPT_QUANTITY:
        return ctl_number(arg, 1, SK_QUANTITY_MAX, &verify->quantity);

    case CTL_OPT_SEED:
        return ctl_number(arg, 0, UINT64_MAX, &verify->seed);

    case CTL_OPT_TIMEOUT:
        return ctl_duration(arg, &verify->timeout_ms);

    case CTL_OPT_NO_WAIT:
        verify->no_wait = 1;
        return 0;

    case CTL_OPT_CACERT:
        verify->cacert = arg;
        return 0;

    default: /* CTL_OPT_INSECURE */
        verify->insecure = 1;
        return 0;
    }
}


static void
ctl_verify_defaults(ctl_verify_t *verify)
{
    ctl_minter_init(&verify->minter);
    verify->first_user = 1;
    verify->nusers = 1000;
    verify->concurrency = 50;
    verify->quantity = 1;
    verify->timeout_ms = 30000;

    /* any seed will do; it is printed */
    if (getrandom(&verify->seed, sizeof(verify->seed), 0) != (ssize_t) sizeof(verify->seed)) {
        verify->seed = (uint64_t) time(NULL);
    }

    verify->seed %= 1000000000;
}


static int
ctl_verify_operands(ctl_t *ctl, ctl_verify_t *verify, int argc, char **argv)
{
    if (argc != 1 || sk_id_parse(argv[0], strlen(argv[0]), &verify->activity) != 0) {
        ctl->exit = ctl_usage(ctl, "one activity is wanted");
        return -1;
    }

    if (verify->url[0] == '\0') {
        ctl->exit = ctl_usage(ctl, "--url is missing");
        return -1;
    }

    if (verify->first_user > UINT64_MAX - verify->nusers) {
        ctl->exit = ctl_usage(ctl, "there are not so many users above %" PRIu64,
                              verify->first_user);
        return -1;
    }

    if (verify->requests == 0) {
        verify->requests = 2 * verify->nusers;
    }

    return 0;
}


int
ctl_verify_options(ctl_t *ctl, ctl_verify_t *verify, int argc, char **argv)
{
    int  opt, i;

    static const struct option  options[] = {
        { "url",         required_argument, NULL, CTL_OPT_URL },
        { "users",       required_argument, NULL, CTL_OPT_USERS },
        { "requests",    required_argument, NULL, CTL_OPT_REQUESTS },
        { "concurrency", required_argument, NULL, CTL_OPT_CONCURRENCY },
        { "first-user",  required_argument, NULL, CTL_OPT_FIRST_USER },
        { "quantity",    required_argument, NULL, CTL_OPT_QUANTITY },
        { "seed",        required_argument, NULL, CTL_OPT_SEED },
        { "timeout",     required_argument, NULL, CTL_OPT_TIMEOUT },
        { "no-wait",     no_argument,       NULL, CTL_OPT_NO_WAIT },
        { "cacert",      required_argument, NULL, CTL_OPT_CACERT },
        { "insecure",    no_argument,       NULL, CTL_OPT_INSECURE },
        CTL_MINTER_OPTIONS,
        CTL_OPTIONS
    };

    ctl_verify_defaults(verify);

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {

        if (opt == '?') {
            return -1;
        }

        if (opt < CTL_OPT_AFTER_MINTER) {
            ctl->exit = ctl_minter_option(ctl, &verify->minter, opt, optarg);

            if (ctl->exit != CTL_FINE) {
                return -1;
            }

        } else if (ctl_verify_option(verify, opt, optarg) != 0) {
            for (i = 0; options[i].val != opt; i++) { /* void */ }

            ctl->exit = ctl_usage(ctl, "bad value of --%s: \"%s\"", options[i].name, optarg);
            return -1;
        }
    }

    return ctl_verify_operands(ctl, verify, argc - optind, argv + optind);
}
