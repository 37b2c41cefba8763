/*
 * What the verbs of seckillctl share: exit codes, options, messages.
 */

#ifndef _CTL_H_INCLUDED_
#define _CTL_H_INCLUDED_

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#include "sk_hmac.h"
#include "sk_secret.h"

#ifndef SECKILL_SQL_DIR
#define SECKILL_SQL_DIR  "/usr/share/seckill/sql"
#endif

#define CTL_CONF_PATH    "/etc/seckill/seckilld.conf"
#define CTL_KEY_PATH     "/etc/seckill/auth.key"

#define CTL_TIME_MAX     64             /* a time as text, NUL included */
#define CTL_MESSAGE_MAX  512

/* The way a run ends; documented by "seckillctl --help". */
typedef enum {
    CTL_FINE = 0,
    CTL_NO = 1,                         /* the answer is no: a check failed, nothing found */
    CTL_USAGE = 2,
    CTL_UNREACHABLE = 3,                /* Redis, MySQL or nginx */
    CTL_REFUSED = 4,                    /* by a safety check */
    CTL_PARTLY = 5                      /* some of it is done, run again */
} ctl_exit_e;

typedef struct ctl_s  ctl_t;

typedef struct {
    const char  *name;
    const char  *synopsis;              /* lines after "seckillctl NAME", parted by '\n' */
    const char  *summary;               /* one line of "seckillctl --help" */
    const char  *help;                  /* the rest of "seckillctl NAME --help" */
    int        (*run)(ctl_t *ctl, int argc, char **argv);       /* returns a ctl_exit_e */
} ctl_verb_t;

struct ctl_s {
    const char        *conf_path;
    int                json;
    const ctl_verb_t  *verb;
    int                exit;            /* what a verb returns when ctl_getopt() says '?' */
    int                answered;        /* the verb has printed its JSON */
    int                failed;          /* code of the first ctl_fail() */
    char               message[CTL_MESSAGE_MAX];    /* its text, "" for none */
    struct ctl_backend_s  *backend;     /* see ctl_backend.h */
};

/* Long options every verb takes, at the end of its table. */
#define CTL_OPTIONS                                                           \
    { "config", required_argument, NULL, 'c' },                               \
    { "json",   no_argument,       NULL, 'j' },                               \
    { "help",   no_argument,       NULL, 'h' },                               \
    { NULL,     0,                 NULL, 0 }

/* Values of a verb's own long options begin here. */
#define CTL_OPT  256

/*
 * The verb's next own option, or -1 after the last, then optind is the first
 * operand.  '?': stop and return ctl->exit (help was shown, or misuse reported).
 */
int ctl_getopt(ctl_t *ctl, int argc, char **argv, const struct option *options);

/* Reports misuse on stderr; returns CTL_USAGE. */
int ctl_usage(const ctl_t *ctl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Reports why the verb ends with this code on stderr; with --json main() prints
 * {"error":{"exit":..,"message":".."}} on stdout unless the verb printed its own
 * answer.  Returns code.
 */
int ctl_fail(ctl_t *ctl, ctl_exit_e code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A line on stderr that changes nothing. */
void ctl_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A whole number in min..max; returns 0 or -1. */
int ctl_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* "50ms" "10s" "5m" "1h", unit required; to milliseconds.  Returns 0 or -1. */
int ctl_duration(const char *text, uint64_t *ms);

/*
 * word, then a decimal: sets *value and returns what follows, or NULL when text
 * does not begin so.  text may be NULL.
 */
const char *ctl_word_number(const char *text, const char *word, uint64_t *value);

/* For qsort() and bsearch() over uint64_t. */
int ctl_id_cmp(const void *a, const void *b);

/*
 * Reads a signing key: wipe it after use.  Warns when everybody may read the
 * file.  Returns 0, or -1 after reporting.
 */
int ctl_key_read(ctl_t *ctl, const char *path, sk_secret_t *key);

/* "2026-11-30 10:00:00 UTC" and "2026-11-30 11:00:00 +0100 (CET)"; buf has CTL_TIME_MAX bytes. */
void ctl_time_utc(char *buf, int64_t ms);
void ctl_time_local(char *buf, int64_t ms);

/* Who runs this, for the ledger: a login name, or "uid 1000". */
void ctl_actor(char *buf, size_t size);
#define CTL_ACTOR_MAX  64

/*
 * Asks for a word before something is done for good: yes is the option --yes; on
 * a terminal the activity's id is typed.  CTL_FINE, or CTL_REFUSED after reporting.
 */
int ctl_confirm(ctl_t *ctl, int yes, uint64_t activity, const char *what);

/*
 * A place where a test ends this run as kill -9 would, when the environment's
 * SECKILLCTL_FAILPOINT is its name: always compiled in, so that what is tested is
 * what runs.
 */
void ctl_failpoint(const char *name);

/*
 * The end of every run: the JSON of an error, then stdout is written out.  A
 * full disk or a closed pipe makes CTL_FINE CTL_PARTLY.  Returns the exit code.
 */
int ctl_finish(ctl_t *ctl, int code);

#endif /* _CTL_H_INCLUDED_ */
