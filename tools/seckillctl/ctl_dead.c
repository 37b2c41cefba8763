/*
 * dead: lists and shows dead letters, and closes them.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_dead.h"
#include "ctl_json.h"
#include "ctl_text.h"
#include "sk_id.h"

typedef enum {
    CTL_DEAD_LIST,
    CTL_DEAD_SHOW,
    CTL_DEAD_RETRY,
    CTL_DEAD_DROP
} ctl_dead_e;


static int
ctl_dead_list(ctl_t *ctl, ctl_dead_t *dead)
{
    char                 when[CTL_TIME_MAX];
    size_t               i;
    ctl_json_t           json;
    const ctl_letter_t  *letter;

    if (ctl->json) {
        ctl_json_begin(ctl, &json);
        ctl_json_map(&json, NULL);
        ctl_json_id(&json, "activity", dead->activity);
        ctl_json_array(&json, "letters");
    }

    for (i = 0; i < dead->books.nletters; i++) {
        letter = &dead->books.letters[i];
        ctl_time_utc(when, (int64_t) letter->dead_ms);

        if (!ctl->json) {
            printf("%s  %s  user %" PRIu64 ", %u units, epoch %" PRIu64 " seq %" PRIu64 ", %s\n",
                   ctl_shown(letter->id), when, letter->user, letter->quantity, letter->epoch,
                   letter->seq, ctl_shown(letter->reason));
            continue;
        }

        ctl_json_map(&json, NULL);
        ctl_json_text(&json, "id", letter->id);
        ctl_json_count(&json, "dead_ms", letter->dead_ms);

        if (letter->has_user) {
            ctl_json_id(&json, "user", letter->user);
        } else {
            ctl_json_text(&json, "user", NULL);
        }

        ctl_json_count(&json, "units", letter->quantity);
        ctl_json_count(&json, "epoch", letter->epoch);
        ctl_json_count(&json, "seq", letter->seq);
        ctl_json_bool(&json, "whole", letter->whole);
        ctl_json_text(&json, "reason", letter->reason);
        ctl_json_map_end(&json);
    }

    if (ctl->json) {
        ctl_json_array_end(&json);
        ctl_json_map_end(&json);
        return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
    }

    if (dead->books.nletters == 0) {
        puts("no dead letters");
    }

    return CTL_FINE;
}


static int
ctl_dead_show(ctl_t *ctl, const ctl_dead_t *dead)
{
    int                rc;
    char               key[SK_KEY_MAX + 1];
    size_t             i;
    ctl_json_t         json;
    redisReply        *reply;
    const redisReply  *fields;

    ctl_key(ctl, key, SK_KEY_DEAD, dead->activity, 0);

    rc = ctl_redis(ctl, &reply, "XRANGE %s %s %s", key, dead->ids[0], dead->ids[0]);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->elements != 1) {
        freeReplyObject(reply);
        return ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " has no dead letter %s",
                        dead->activity, dead->ids[0]);
    }

    fields = skb_redis_at(skb_redis_at(reply, 0), 1);

    if (ctl->json) {
        ctl_json_begin(ctl, &json);
        ctl_json_map(&json, NULL);
        ctl_json_text(&json, "id", dead->ids[0]);
        ctl_json_array(&json, "fields");
    }

    for (i = 0; i + 1 < fields->elements; i += 2) {
        if (ctl->json) {
            ctl_json_map(&json, NULL);
            ctl_json_text(&json, "name", skb_redis_text(fields, i));
            ctl_json_text(&json, "value", skb_redis_text(fields, i + 1));
            ctl_json_map_end(&json);

        } else {
            ctl_text_print(skb_redis_text(fields, i), skb_redis_at(fields, i)->len);
            printf(": ");
            ctl_text_print(skb_redis_text(fields, i + 1), skb_redis_at(fields, i + 1)->len);
            putchar('\n');
        }
    }

    freeReplyObject(reply);

    if (!ctl->json) {
        return CTL_FINE;
    }

    ctl_json_array_end(&json);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


static int
ctl_dead_tell(ctl_t *ctl, const ctl_dead_t *dead)
{
    int         refused;
    size_t      i;
    ctl_json_t  json;

    refused = 0;

    if (ctl->json) {
        ctl_json_begin(ctl, &json);
        ctl_json_map(&json, NULL);
        ctl_json_id(&json, "activity", dead->activity);
        ctl_json_array(&json, "letters");
    }

    for (i = 0; i < dead->nclosings && dead->closings[i].id; i++) {
        refused |= dead->closings[i].failed;

        if (!ctl->json) {
            printf("%s  %s\n", ctl_shown(dead->closings[i].id), dead->closings[i].done);
            continue;
        }

        ctl_json_map(&json, NULL);
        ctl_json_text(&json, "id", dead->closings[i].id);
        ctl_json_text(&json, "done", dead->closings[i].done);
        ctl_json_bool(&json, "refused", dead->closings[i].failed);
        ctl_json_map_end(&json);
    }

    if (ctl->json) {
        ctl_json_array_end(&json);
        ctl_json_error(&json, ctl);
        ctl_json_map_end(&json);

        if (ctl_json_end(&json) != 0) {
            return CTL_PARTLY;
        }
    }

    return refused ? CTL_REFUSED : CTL_FINE;
}


static int
ctl_dead_close(ctl_t *ctl, ctl_dead_t *dead, ctl_dead_e how)
{
    int  rc, told;

    dead->nclosings = dead->all ? dead->books.nletters : dead->nids;
    dead->closings = calloc(dead->nclosings + 1, sizeof(ctl_closing_t));

    if (dead->closings == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    rc = how == CTL_DEAD_RETRY ? ctl_dead_retry(ctl, dead) : ctl_dead_drop(ctl, dead);
    told = ctl_dead_tell(ctl, dead);

    free(dead->closings);
    dead->closings = NULL;

    return rc == CTL_FINE ? told : rc;
}


static int
ctl_dead_work(ctl_t *ctl, ctl_dead_t *dead, ctl_dead_e how, int yes)
{
    int  rc;

    if (how == CTL_DEAD_SHOW) {
        rc = ctl_open_redis(ctl);
        return rc == CTL_FINE ? ctl_dead_show(ctl, dead) : rc;
    }

    if (how != CTL_DEAD_LIST) {
        if ((rc = ctl_open_mysql(ctl)) != CTL_FINE || (rc = ctl_open_redis(ctl)) != CTL_FINE) {
            return rc;
        }

        if (how == CTL_DEAD_DROP
            && (rc = ctl_confirm(ctl, yes, dead->activity, "Dead letters are deleted"))
               != CTL_FINE)
        {
            return rc;
        }

        rc = ctl_activity_lock(ctl, dead->activity);
        if (rc != CTL_FINE) {
            return rc;
        }
    }

    if (how == CTL_DEAD_RETRY) {
        /* whether a letter's units are kept anywhere is for the whole of the books to say */
        rc = ctl_books_read(ctl, &dead->books, dead->activity);

        if (rc == CTL_FINE) {
            ctl_books_judge(&dead->books);
        }

    } else if ((rc = ctl_open_redis(ctl)) == CTL_FINE) {
        dead->books.activity = dead->activity;
        rc = ctl_books_letters(ctl, &dead->books);
    }

    if (rc != CTL_FINE) {
        return rc;
    }

    return how == CTL_DEAD_LIST ? ctl_dead_list(ctl, dead) : ctl_dead_close(ctl, dead, how);
}


/* WORK ID [LETTER...] */
static int
ctl_dead_operands(ctl_t *ctl, ctl_dead_t *dead, int argc, char **argv, ctl_dead_e *how)
{
    int          i;
    ctl_entry_t  entry;

    static const char *const  works[] = { "list", "show", "retry", "drop" };

    for (i = 0; argc > 0 && i < 4 && strcmp(argv[0], works[i]) != 0; i++) { /* void */ }

    if (argc < 2 || i == 4) {
        return ctl_usage(ctl, "list, show, retry or drop, and an activity are wanted");
    }

    *how = (ctl_dead_e) i;

    if (sk_id_parse(argv[1], strlen(argv[1]), &dead->activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[1]);
    }

    dead->ids = argv + 2;
    dead->nids = (size_t) argc - 2;

    for (i = 2; i < argc; i++) {
        if (strlen(argv[i]) >= CTL_ENTRY_MAX || ctl_entry_parse(&entry, argv[i]) != 0) {
            return ctl_usage(ctl, "not a dead letter: \"%s\"", argv[i]);
        }
    }

    if ((*how == CTL_DEAD_LIST) != (dead->nids == 0 && !dead->all)
        || (*how == CTL_DEAD_SHOW && dead->nids != 1) || (dead->all && dead->nids > 0))
    {
        return ctl_usage(ctl, *how == CTL_DEAD_LIST ? "list takes no letters"
                         : *how == CTL_DEAD_SHOW ? "one letter is wanted"
                                                 : "letters or --all are wanted");
    }

    return CTL_FINE;
}


static int
ctl_dead_run(ctl_t *ctl, int argc, char **argv)
{
    int         opt, rc, yes;
    ctl_dead_e  how = CTL_DEAD_LIST;
    ctl_dead_t  dead;

    enum { CTL_OPT_ALL = CTL_OPT, CTL_OPT_KEEP, CTL_OPT_YES };

    static const struct option  options[] = {
        { "all",        no_argument, NULL, CTL_OPT_ALL },
        { "keep-units", no_argument, NULL, CTL_OPT_KEEP },
        { "yes",        no_argument, NULL, CTL_OPT_YES },
        CTL_OPTIONS
    };

    yes = 0;
    memset(&dead, 0, sizeof(dead));

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        switch (opt) {

        case CTL_OPT_ALL:
            dead.all = 1;
            break;

        case CTL_OPT_KEEP:
            dead.keep_units = 1;
            break;

        case CTL_OPT_YES:
            yes = 1;
            break;

        default:
            return ctl->exit;
        }
    }

    rc = ctl_dead_operands(ctl, &dead, argc - optind, argv + optind, &how);

    if (rc == CTL_FINE) {
        rc = ctl_dead_work(ctl, &dead, how, yes);
    }

    ctl_books_free(&dead.books);

    return rc;
}


const ctl_verb_t  ctl_dead_verb = {
    "dead",
    "list ID\nshow ID LETTER\nretry ID LETTER...|--all\n"
    "drop ID LETTER...|--all [--keep-units] [--yes]",
    "list, show, retry or drop purchases that could not become orders",
    "retry takes the buyer's failure back, on record, and queues the purchase again,\n"
    "with a number of its own when its number is another order's; refused (exit 4) once\n"
    "the units were given back, or when none is left for it.  drop\n"
    "deletes letters whose units were given back, or any with --keep-units: they stay\n"
    "unsold until the settle, or a restore.\n"
    "To give the units back: \"reconcile ID --repair release\".\n"
    "\n"
    "      --all         every letter of the activity\n"
    "      --keep-units  drop a letter and leave its units where they are\n"
    "      --yes         do not ask\n",
    ctl_dead_run
};
