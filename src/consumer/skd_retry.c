/*
 * A short list, looked through from end to end: it is nearly always empty.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skd_retry.h"


int
skd_retries_init(skd_retries_t *retries)
{
    retries->count = 0;
    retries->all = calloc(SKD_RETRIES_MAX, sizeof(skd_retry_t));

    return retries->all == NULL ? -1 : 0;
}


void
skd_retries_done(skd_retries_t *retries)
{
    free(retries->all);
    retries->all = NULL;
    retries->count = 0;
}


skd_retry_t *
skd_retry_find(skd_retries_t *retries, uint64_t activity, const char *id)
{
    for (size_t i = 0; i < retries->count; i++) {
        if (retries->all[i].activity == activity && strcmp(retries->all[i].id, id) == 0) {
            return &retries->all[i];
        }
    }

    return NULL;
}


skd_retry_t *
skd_retry_add(skd_retries_t *retries, uint64_t activity, const char *id, const char *error,
    uint32_t first_ms, uint32_t cap_ms)
{
    skd_retry_t  *retry = skd_retry_find(retries, activity, id);

    if (retry == NULL) {
        if (retries->count == SKD_RETRIES_MAX) {
            return NULL;
        }

        retry = &retries->all[retries->count++];
        memset(retry, 0, sizeof(skd_retry_t));

        retry->activity = activity;
        retry->first_ms = skd_now_ms();
        snprintf(retry->id, sizeof(retry->id), "%s", id);
        snprintf(retry->first_error, sizeof(retry->first_error), "%s", error);
    }

    retry->attempts++;
    retry->asked = 0;
    snprintf(retry->last_error, sizeof(retry->last_error), "%s", error);
    skd_backoff_grow(&retry->backoff, first_ms, cap_ms);

    return retry;
}


void
skd_retry_load(const skd_retry_t *retry, skd_entry_t *entry)
{
    entry->attempts = retry->attempts;
    entry->age_ms = (uint64_t) (skd_now_ms() - retry->first_ms);
    memcpy(entry->error, retry->first_error, sizeof(entry->error));
}


void
skd_retry_remove(skd_retries_t *retries, skd_retry_t *retry)
{
    *retry = retries->all[--retries->count];
}


const skd_retry_t *
skd_retry_due(skd_retries_t *retries)
{
    int64_t       now;
    skd_retry_t  *retry;

    if (retries->count == 0) {
        return NULL;
    }

    now = skd_now_ms();

    for (size_t i = 0; i < retries->count; i++) {
        retry = &retries->all[i];

        if (!retry->asked && retry->backoff.next_ms <= now) {
            retry->asked = 1;
            return retry;
        }
    }

    return NULL;
}


void
skd_retry_swept(skd_retries_t *retries, uint64_t activity)
{
    size_t  i = 0;

    while (i < retries->count) {
        if (retries->all[i].activity == activity && retries->all[i].asked) {
            skd_retry_remove(retries, &retries->all[i]);

        } else {
            i++;
        }
    }
}
