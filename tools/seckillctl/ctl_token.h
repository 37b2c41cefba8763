/*
 * A minter signs tokens with the key of a file: for "token" and for crowds.
 */

#ifndef _CTL_TOKEN_H_INCLUDED_
#define _CTL_TOKEN_H_INCLUDED_

#include "ctl.h"

#define CTL_TOKEN_MAX  1000             /* bytes of one token */

typedef struct {
    const char     *key_file;
    sk_hmac_alg_e   alg;
    const char     *claim;
    uint64_t        ttl_ms;
    sk_hmac_t      *key;                /* from open to close */
    int64_t         now;                /* epoch seconds of open */
    int64_t         expires;
} ctl_minter_t;

enum {
    CTL_OPT_KEY_FILE = CTL_OPT,
    CTL_OPT_ALG,
    CTL_OPT_CLAIM,
    CTL_OPT_TTL,
    CTL_OPT_AFTER_MINTER                /* a verb's own values go on here */
};

#define CTL_MINTER_OPTIONS                                                    \
    { "key-file", required_argument, NULL, CTL_OPT_KEY_FILE },                \
    { "alg",      required_argument, NULL, CTL_OPT_ALG },                     \
    { "claim",    required_argument, NULL, CTL_OPT_CLAIM },                   \
    { "ttl",      required_argument, NULL, CTL_OPT_TTL }

#define CTL_MINTER_HELP                                                       \
    "      --key-file FILE  the signing key, default " CTL_KEY_PATH ";\n"     \
    "                       a line end after it is not part of it\n"          \
    "      --alg ALG        HS256 (default), HS384 or HS512\n"                \
    "      --claim NAME     where the user id goes, default sub\n"            \
    "      --ttl TIME       how long it lives, default 1h\n"

void ctl_minter_init(ctl_minter_t *minter);

/* Takes one of CTL_MINTER_OPTIONS.  Returns CTL_FINE, or CTL_USAGE after reporting. */
int ctl_minter_option(ctl_t *ctl, ctl_minter_t *minter, int opt, const char *arg);

/* Reads the key.  Returns CTL_FINE, or another code after reporting. */
int ctl_minter_open(ctl_t *ctl, ctl_minter_t *minter);
void ctl_minter_close(ctl_minter_t *minter);

#endif /* _CTL_TOKEN_H_INCLUDED_ */
