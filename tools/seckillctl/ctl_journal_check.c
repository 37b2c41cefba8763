/*
 * A first look at the journals, before anything is done with them.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_backend.h"
#include "ctl_journal.h"
#include "ctl_old_line.h"
#include "ctl_text.h"

#define CTL_TOLD  10                    /* lines of a file told one by one */

typedef struct {
    size_t  file;
    size_t  opened;
    size_t  bad;
    size_t  foreign;
    size_t  no_key;
    size_t  old;
} ctl_tally_t;


static int
ctl_journals_gap(ctl_t *ctl, ctl_journals_t *journals, size_t file, const sk_journal_line_t *line)
{
    ctl_gap_t  *gap;

    /* every worker tells of its own */
    journals->lost += line->lost;

    if (journals->ngaps == CTL_GAPS_MAX) {
        return CTL_FINE;
    }

    if (journals->gaps == NULL) {
        journals->gaps = calloc(CTL_GAPS_MAX, sizeof(ctl_gap_t));

        if (journals->gaps == NULL) {
            return ctl_fail(ctl, CTL_PARTLY, "out of memory");
        }
    }

    gap = &journals->gaps[journals->ngaps++];
    gap->file = file;
    gap->lost = line->lost;
    gap->from_ms = line->from_ms;
    gap->to_ms = line->to_ms;

    return CTL_FINE;
}


static int
ctl_journals_tally(ctl_t *ctl, ctl_journals_t *journals, const ctl_journal_file_t *file,
    ctl_tally_t *tally)
{
    ctl_old_line_t     old;
    sk_journal_line_t  line;

    switch (ctl_journal_line(journals, ctl_config(ctl)->redis.prefix, file, &line)) {

    case CTL_LINE_SIGNED:
        tally->opened += line.kind == SK_JOURNAL_OPEN;

        return line.kind == SK_JOURNAL_GAP ? ctl_journals_gap(ctl, journals, tally->file, &line)
                                           : CTL_FINE;

    case CTL_LINE_FOREIGN:
        if (tally->foreign++ == 0) {
            ctl_warn("%s:%zu: a line of another shop, with prefix \"%.*s\"", file->path,
                     file->number, (int) line.prefix_len, line.prefix);
        }

        return CTL_FINE;

    case CTL_LINE_NO_KEY:
        if (tally->no_key++ == 0) {
            ctl_warn("%s:%zu: signed with key %.*s, which is not known here", file->path,
                     file->number, SK_JOURNAL_ID, line.key_id);
        }

        return CTL_FINE;

    default:
        break;
    }

    if (journals->unsigned_too && ctl_old_line_parse(&old, file->text, file->len) == 0) {
        tally->old++;
        return CTL_FINE;
    }

    if (tally->bad++ < CTL_TOLD) {
        ctl_warn("%s:%zu is no whole line with a true signature", file->path, file->number);
    }

    return CTL_FINE;
}


static int
ctl_journals_tell(ctl_t *ctl, ctl_journals_t *journals, const ctl_journal_file_t *file,
    const ctl_tally_t *tally)
{
    if (tally->bad > CTL_TOLD) {
        ctl_warn("%s has %zu such lines", file->path, tally->bad);
    }

    if (tally->foreign > 0) {
        ctl_warn("%s has %zu lines of other shops", file->path, tally->foreign);
    }

    if (tally->no_key > 0) {
        ctl_warn("%s has %zu lines of keys that are not known: \"queue_token_key_file\" of "
                 "[redis] names the one of nodes that have a file", file->path, tally->no_key);
    }

    journals->bad += tally->bad + tally->no_key;

    if (tally->opened == 0 && tally->old == 0) {
        return ctl_fail(ctl, CTL_USAGE, "\"%s\" has no signed \"open\" line of this shop: it is "
                        "no journal, or not the whole of one", file->path);
    }

    return CTL_FINE;
}


static int
ctl_journals_look(ctl_t *ctl, ctl_journals_t *journals, size_t i, ctl_journal_file_t *file)
{
    int          rc, next;
    ctl_tally_t  tally;

    memset(&tally, 0, sizeof(tally));
    tally.file = i;

    rc = ctl_journal_open(ctl, journals, i, file);

    while (rc == CTL_FINE) {
        next = ctl_journal_next(ctl, file);

        if (next <= 0) {
            rc = next < 0 ? CTL_USAGE : CTL_FINE;
            break;
        }

        rc = ctl_journals_tally(ctl, journals, file, &tally);
    }

    ctl_journal_close(file);

    return rc == CTL_FINE ? ctl_journals_tell(ctl, journals, file, &tally) : rc;
}


int
ctl_journals_check(ctl_t *ctl, ctl_journals_t *journals)
{
    int                  rc;
    char                 error[SKB_ERROR_MAX];
    size_t               i;
    ctl_journal_file_t  *file;

    if (journals->n == 0) {
        return CTL_FINE;
    }

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE || (rc = ctl_open_redis(ctl)) != CTL_FINE) {
        return rc;
    }

    if (skb_journal_keys_read(&journals->keys, ctl_mysql(ctl), ctl_redis_context(ctl),
                              ctl_config(ctl), error, sizeof(error)) != 0)
    {
        return ctl_fail(ctl, CTL_UNREACHABLE, "keys of the journals: %s", error);
    }

    file = malloc(sizeof(*file));

    if (file == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    for (i = 0; i < journals->n && rc == CTL_FINE; i++) {
        rc = ctl_journals_look(ctl, journals, i, file);
    }

    free(file);

    return rc;
}


void
ctl_journals_free(ctl_journals_t *journals)
{
    skb_journal_keys_free(&journals->keys);
    free(journals->gaps);

    if (journals->input) {
        (void) close(journals->input);
    }

    memset(journals, 0, sizeof(*journals));
}


int
ctl_journals_code(const ctl_journals_t *journals, int code)
{
    return journals->bad > 0 && (code == CTL_FINE || code == CTL_NO) ? CTL_PARTLY : code;
}


void
ctl_journals_print(const ctl_journals_t *journals)
{
    char        from[CTL_TIME_MAX], to[CTL_TIME_MAX];
    size_t      i;
    ctl_gap_t  *gap;

    for (i = 0; i < journals->ngaps; i++) {
        gap = &journals->gaps[i];
        ctl_time_utc(from, (int64_t) gap->from_ms);
        ctl_time_utc(to, (int64_t) gap->to_ms);
        printf("  gap      %" PRIu64 " lines from %s to %s could not be written: %s\n", gap->lost,
               from, to, ctl_shown(journals->files[gap->file]));
    }

    if (journals->lost > 0) {
        printf("  gap      up to %" PRIu64 " purchases in no journal, of whom nobody can tell\n",
               journals->lost);
    }

    if (journals->bad > 0) {
        printf("  journals %zu lines are not believed\n", journals->bad);
    }
}


void
ctl_journals_json(const ctl_journals_t *journals, ctl_json_t *json)
{
    size_t      i;
    ctl_gap_t  *gap;

    ctl_json_map(json, "journals");
    ctl_json_count(json, "not_believed", journals->bad);
    ctl_json_count(json, "lost_lines", journals->lost);
    ctl_json_array(json, "gaps");

    for (i = 0; i < journals->ngaps; i++) {
        gap = &journals->gaps[i];
        ctl_json_map(json, NULL);
        ctl_json_text(json, "journal", journals->files[gap->file]);
        ctl_json_count(json, "lines", gap->lost);
        ctl_json_count(json, "from_ms", gap->from_ms);
        ctl_json_count(json, "to_ms", gap->to_ms);
        ctl_json_map_end(json);
    }

    ctl_json_array_end(json);
    ctl_json_map_end(json);
}
