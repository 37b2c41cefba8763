/*
 * token: mints tokens for tests, as the shop's login would.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "ctl_json.h"
#include "ctl_token.h"
#include "sk_id.h"
#include "sk_jwt.h"

#define CTL_TOKENS_MAX  1000000

typedef struct {
    uint64_t        first;
    uint64_t        last;
    int             range;
    ctl_minter_t    minter;
} ctl_token_t;


int
ctl_minter_option(ctl_t *ctl, ctl_minter_t *minter, int opt, const char *arg)
{
    switch (opt) {

    case CTL_OPT_KEY_FILE:
        minter->key_file = arg;
        return CTL_FINE;

    case CTL_OPT_ALG:
        if (sk_hmac_alg_parse(arg, strlen(arg), &minter->alg) != 0) {
            return ctl_usage(ctl, "no such algorithm: \"%s\", take HS256, HS384 or HS512", arg);
        }
        return CTL_FINE;

    case CTL_OPT_CLAIM:
        if (*arg == '\0' || strlen(arg) > 64 || strpbrk(arg, "\"\\") != NULL) {
            return ctl_usage(ctl, "bad name of a claim: \"%s\"", arg);
        }
        minter->claim = arg;
        return CTL_FINE;

    default: /* CTL_OPT_TTL */
        if (ctl_duration(arg, &minter->ttl_ms) != 0 || minter->ttl_ms < 1000) {
            return ctl_usage(ctl, "bad life of a token: \"%s\"", arg);
        }
        return CTL_FINE;
    }
}


void
ctl_minter_init(ctl_minter_t *minter)
{
    minter->key_file = CTL_KEY_PATH;
    minter->alg = SK_HS256;
    minter->claim = "sub";
    minter->ttl_ms = 3600 * 1000;
    minter->key = NULL;
    minter->now = 0;
    minter->expires = 0;
}


int
ctl_minter_open(ctl_t *ctl, ctl_minter_t *minter)
{
    sk_secret_t  key;

    if (ctl_key_read(ctl, minter->key_file, &key) != 0) {
        return CTL_USAGE;
    }

    minter->key = sk_hmac_create(minter->alg, (const uint8_t *) key.text, key.len);
    sk_secret_wipe(&key);

    if (minter->key == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "no memory for the key");
    }

    minter->now = (int64_t) time(NULL);
    minter->expires = minter->now + (int64_t) (minter->ttl_ms / 1000);

    return CTL_FINE;
}


void
ctl_minter_close(ctl_minter_t *minter)
{
    sk_hmac_free(minter->key);
    minter->key = NULL;
}


/* "7" or "7..9" */
static int
ctl_token_users(ctl_token_t *token, const char *text)
{
    const char  *dots;

    dots = strstr(text, "..");
    token->range = dots != NULL;

    if (dots == NULL) {
        if (sk_id_parse(text, strlen(text), &token->first) != 0) {
            return -1;
        }

        token->last = token->first;
        return 0;
    }

    if (sk_id_parse(text, (size_t) (dots - text), &token->first) != 0
        || sk_id_parse(dots + 2, strlen(dots + 2), &token->last) != 0)
    {
        return -1;
    }

    return token->last >= token->first && token->last - token->first < CTL_TOKENS_MAX ? 0 : -1;
}


static int
ctl_token_print(ctl_t *ctl, ctl_token_t *token)
{
    long           len;
    char           text[CTL_TOKEN_MAX + 1];
    uint64_t       user, i;
    ctl_json_t     json;
    ctl_minter_t  *minter;

    minter = &token->minter;

    if (ctl->json) {
        ctl_json_begin(ctl, &json);
        ctl_json_map(&json, NULL);
        ctl_json_count(&json, "expires", (uint64_t) minter->expires);
        ctl_json_array(&json, "tokens");
    }

    for (i = 0; i <= token->last - token->first; i++) {
        user = token->first + i;

        len = sk_jwt_mint(text, CTL_TOKEN_MAX, minter->key, minter->alg, minter->claim, user,
                          minter->now, minter->expires);
        if (len < 0) {
            return ctl_fail(ctl, CTL_PARTLY, "cannot sign the token of user %" PRIu64, user);
        }

        text[len] = '\0';

        if (!ctl->json) {
            puts(text);
            continue;
        }

        ctl_json_map(&json, NULL);
        ctl_json_id(&json, "user", user);
        ctl_json_text(&json, "token", text);
        ctl_json_map_end(&json);
    }

    if (ctl->json) {
        ctl_json_array_end(&json);
        ctl_json_map_end(&json);
        return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
    }

    return CTL_FINE;
}


static int
ctl_token_run(ctl_t *ctl, int argc, char **argv)
{
    int          opt, rc;
    ctl_token_t  token;

    static const struct option  options[] = {
        CTL_MINTER_OPTIONS,
        CTL_OPTIONS
    };

    memset(&token, 0, sizeof(token));
    ctl_minter_init(&token.minter);

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        rc = ctl_minter_option(ctl, &token.minter, opt, optarg);
        if (rc != CTL_FINE) {
            return rc;
        }
    }

    if (argc - optind != 1) {
        return ctl_usage(ctl, "one user or one range of users is wanted");
    }

    if (ctl_token_users(&token, argv[optind]) != 0) {
        return ctl_usage(ctl, "not a user, nor a range of at most %d: \"%s\"", CTL_TOKENS_MAX,
                         argv[optind]);
    }

    rc = ctl_minter_open(ctl, &token.minter);

    if (rc == CTL_FINE) {
        rc = ctl_token_print(ctl, &token);
        ctl_minter_close(&token.minter);
    }

    return rc;
}


const ctl_verb_t  ctl_token_verb = {
    "token",
    "USER [--key-file FILE] [--alg HS256] [--claim sub] [--ttl 1h]\nFROM..TO ...",
    "mint a buyer's token for tests",
    "Prints a JSON web token that lets USER buy, for tests; of a range, one per line.\n"
    "\n"
    CTL_MINTER_HELP,
    ctl_token_run
};
