/*
 * Who is on the wrong side of the books, and why.
 */

#ifndef _CTL_FINDINGS_H_INCLUDED_
#define _CTL_FINDINGS_H_INCLUDED_

#include "ctl_books.h"

typedef enum {
#define CTL_FINDING(name, word, meaning)  CTL_IS_##name,
#include "ctl_findings_x.h"
#undef CTL_FINDING
    CTL_FINDINGS
} ctl_finding_e;

typedef struct {
    ctl_finding_e   kind;
    uint64_t        user;
    uint64_t        epoch;              /* of the purchase; 0: not known */
    uint64_t        seq;
    uint64_t        units;              /* 0: not known, or Redis has them */
    int             unreal;             /* released without them: they do not exist */
    int64_t         trace;              /* its index, -1: none */
    int64_t         letter;
    const char     *note;               /* more, or "" */
    const char     *done;               /* by a repair, "" for nothing */
} ctl_finding_t;

typedef struct {
    ctl_finding_t  *all;                /* by kind, then by user */
    size_t          n;
    size_t          room;
    size_t          wrong;              /* without letters and "maybe", which are no fault */
    size_t          skipped;            /* users who are in flight: not judged */
} ctl_findings_t;

/*
 * Everything at once: the books of an activity with these journals, judged, and
 * the findings.  Both are to be freed, whatever is returned.
 */
int ctl_findings_read(ctl_t *ctl, uint64_t activity, const ctl_journals_t *journals,
    uint64_t grace_ms, ctl_books_t *books, ctl_findings_t *findings);

/* Goes through judged books.  CTL_FINE, or another code after reporting. */
int ctl_findings_make(ctl_t *ctl, const ctl_books_t *books, ctl_findings_t *findings);
void ctl_findings_free(ctl_findings_t *findings);

/* "lost", and what it means. */
const char *ctl_finding_word(ctl_finding_e kind);
const char *ctl_finding_meaning(ctl_finding_e kind);

#endif /* _CTL_FINDINGS_H_INCLUDED_ */
