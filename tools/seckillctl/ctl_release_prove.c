/*
 * What a release may give back, asked before its first write.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl_release.h"


const char *
ctl_release_refusal(const ctl_repair_t *repair, const ctl_finding_t *finding)
{
    if (finding->kind == CTL_IS_VANISHED || finding->kind == CTL_IS_CLOSED) {
        return finding->user ? NULL : "not released: it names no user";
    }

    if (finding->kind == CTL_IS_LETTER && (finding->user == 0 || finding->units == 0)) {
        return "not released: it holds no purchase, see \"dead drop\"";
    }

    if (finding->kind == CTL_IS_LOST && finding->note[0] != '\0') {
        return "not released: was told success, replay";
    }

    if (finding->units == 0) {
        return "not released: how many units is not known, give the journals";
    }

    if (repair->books->row.status == 2) {
        return "not released: the sale is settled";
    }

    return NULL;
}


int
ctl_release_is_candidate(const ctl_repair_t *repair, const ctl_finding_t *finding)
{
    return (repair->user == 0 || repair->user == finding->user)
           && finding->kind <= CTL_IS_LETTER;
}


/* Units to give back, by what is believed about them. */
typedef struct {
    uint64_t  letters;
    uint64_t  others;
} ctl_claims_t;


static void
ctl_release_claims(const ctl_repair_t *repair, ctl_claims_t *claims)
{
    size_t                i;
    const ctl_finding_t  *finding;

    memset(claims, 0, sizeof(*claims));

    for (i = 0; i < repair->findings->n; i++) {
        finding = &repair->findings->all[i];

        if (!ctl_release_is_candidate(repair, finding) || finding->kind == CTL_IS_VANISHED
            || ctl_release_refusal(repair, finding) != NULL)
        {
            continue;
        }

        if (finding->kind == CTL_IS_LETTER) {
            claims->letters += finding->units;
        } else {
            claims->others += finding->units;
        }
    }
}


int
ctl_release_prove(ctl_t *ctl, const ctl_repair_t *repair, int64_t *real)
{
    int64_t             room, wanted;
    ctl_claims_t        claims;
    const ctl_books_t  *books;

    books = repair->books;
    ctl_release_claims(repair, &claims);

    if (claims.others > 0 && (int64_t) claims.others > books->missing) {
        return ctl_fail(ctl, CTL_REFUSED, "%" PRIu64 " units were to be given back, but only %"
                        PRId64 " are missing from the books of activity %" PRIu64
                        ": nothing was changed", claims.others,
                        books->missing > 0 ? books->missing : 0, books->activity);
    }

    if (repair->target == CTL_TO_REDIS
        && (books->live.now_ms >= books->live.end_ms || strcmp(books->live.state, "settled") == 0))
    {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is over: nothing goes back on "
                        "sale, say --to product", books->activity);
    }

    *real = books->dead + (books->missing < 0 ? books->missing : 0);
    *real = *real > 0 ? *real : 0;

    wanted = (int64_t) claims.letters;
    wanted = (int64_t) claims.others + (wanted < *real ? wanted : *real);
    room = books->reserved - (int64_t) books->row.sold - (int64_t) books->row.returned;

    if (books->reserved >= 0 && wanted > room) {
        return ctl_fail(ctl, CTL_REFUSED, "%" PRId64 " units were to be given back, but of the %"
                        PRId64 " that were reserved for activity %" PRIu64 " only %" PRId64
                        " are neither sold nor returned: nothing was changed", wanted,
                        books->reserved, books->activity, room > 0 ? room : 0);
    }

    return CTL_FINE;
}
