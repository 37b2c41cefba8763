/*
 * The nodes' journals.  Only whole lines with a true signature are believed; all
 * others are counted, and told by their numbers.
 */

#ifndef _CTL_JOURNAL_H_INCLUDED_
#define _CTL_JOURNAL_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "ctl.h"
#include "ctl_json.h"
#include "sk_journal.h"
#include "skb_token_key.h"

#define CTL_JOURNALS_MAX  64
#define CTL_GAPS_MAX      1000          /* more are counted only */

/* Lines that a node could not write: nobody knows what was in them. */
typedef struct {
    size_t    file;
    uint64_t  lost;
    uint64_t  from_ms;
    uint64_t  to_ms;
} ctl_gap_t;

/* Files of the nodes, as --journal names them. */
typedef struct {
    const char          *files[CTL_JOURNALS_MAX];       /* "-": standard input */
    size_t               n;
    int                  unsigned_too;  /* --unsigned: lines of version 0.1.0 are listed */

    /* once ctl_journals_check() has looked at them */
    int                  input;         /* a copy of standard input, or 0 */
    skb_journal_keys_t   keys;
    size_t               bad;           /* lines that are not believed */
    ctl_gap_t           *gaps;
    size_t               ngaps;
    uint64_t             lost;          /* lines, in all gaps */
} ctl_journals_t;

/* What a line is. */
typedef enum {
    CTL_LINE_SIGNED,
    CTL_LINE_UNSIGNED,                  /* not whole, or not signed by one of our keys */
    CTL_LINE_FOREIGN,                   /* of another shop */
    CTL_LINE_NO_KEY                     /* of a key that nobody knows any more */
} ctl_line_e;

/* One file while it is read, compressed or not. */
typedef struct {
    gzFile       gz;
    const char  *path;
    size_t       number;                /* of the line, from 1 on */
    char         text[SK_JOURNAL_LINE + 1];
    size_t       len;
    int          whole;                 /* it was not longer than any line can be */
    char         buf[65536];
    size_t       at;
    size_t       end;
} ctl_journal_file_t;

/* Opens one of the files.  CTL_FINE, or CTL_USAGE after reporting. */
int ctl_journal_open(ctl_t *ctl, const ctl_journals_t *journals, size_t i,
    ctl_journal_file_t *file);

/* The next line that is not empty: 1, 0 at the end, -1 after reporting. */
int ctl_journal_next(ctl_t *ctl, ctl_journal_file_t *file);
void ctl_journal_close(ctl_journal_file_t *file);

/* Reads the line that was found. */
ctl_line_e ctl_journal_line(const ctl_journals_t *journals, const char *prefix,
    const ctl_journal_file_t *file, sk_journal_line_t *line);

/*
 * Before anything is done: reads the keys and all files once, tells of lines that
 * are not believed, and finds the gaps.  CTL_USAGE when one is not a journal of
 * this shop, that is without one signed "open" line.
 */
int ctl_journals_check(ctl_t *ctl, ctl_journals_t *journals);
void ctl_journals_free(ctl_journals_t *journals);

/* The option --journal, and names that follow.  CTL_FINE, or CTL_USAGE after reporting. */
int ctl_journals_add(ctl_t *ctl, ctl_journals_t *journals, const char *path);

/* A run that ends so, but for lines that were not believed. */
int ctl_journals_code(const ctl_journals_t *journals, int code);

/* What can't be known: as lines for people, or as members of a map. */
void ctl_journals_print(const ctl_journals_t *journals);
void ctl_journals_json(const ctl_journals_t *journals, ctl_json_t *json);

#endif /* _CTL_JOURNAL_H_INCLUDED_ */
