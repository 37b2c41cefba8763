/*
 * Lines of a journal, from a file, a compressed one, or standard input.  A line
 * that is too long is one line all the same, up to its end.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl_journal.h"


/* it is read more than once */
static int
ctl_journal_input(ctl_t *ctl, int *copy)
{
    int      fd;
    char     buf[65536];
    ssize_t  n, put, done;

    fd = memfd_create("journal", MFD_CLOEXEC);

    if (fd < 0) {
        return ctl_fail(ctl, CTL_PARTLY, "journal \"-\": %s", strerror(errno));
    }

    while ((n = read(STDIN_FILENO, buf, sizeof(buf))) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }

        for (done = 0; done < n; done += put) {
            put = write(fd, buf + done, (size_t) (n - done));

            if (put < 0) {
                n = -1;
                break;
            }
        }

        if (n < 0) {
            (void) close(fd);
            return ctl_fail(ctl, CTL_USAGE, "journal \"-\": %s", strerror(errno));
        }
    }

    *copy = fd;

    return CTL_FINE;
}


int
ctl_journals_add(ctl_t *ctl, ctl_journals_t *journals, const char *path)
{
    if (journals->n == CTL_JOURNALS_MAX) {
        return ctl_usage(ctl, "more than %d journals", CTL_JOURNALS_MAX);
    }

    if (strcmp(path, "-") == 0) {
        if (journals->input) {
            return ctl_usage(ctl, "standard input is one journal");
        }

        if (ctl_journal_input(ctl, &journals->input) != CTL_FINE) {
            return CTL_USAGE;
        }
    }

    journals->files[journals->n++] = path;

    return CTL_FINE;
}


int
ctl_journal_open(ctl_t *ctl, const ctl_journals_t *journals, size_t i, ctl_journal_file_t *file)
{
    int  fd;

    file->path = journals->files[i];
    file->number = 0;
    file->at = file->end = 0;
    file->gz = NULL;

    if (strcmp(file->path, "-") == 0) {
        fd = fcntl(journals->input, F_DUPFD_CLOEXEC, 3);

        if (fd >= 0) {
            (void) lseek(fd, 0, SEEK_SET);
        }

    } else {
        fd = open(file->path, O_RDONLY | O_CLOEXEC);
    }

    if (fd < 0) {
        return ctl_fail(ctl, CTL_USAGE, "journal \"%s\": %s", file->path, strerror(errno));
    }

    file->gz = gzdopen(fd, "rb");

    if (file->gz == NULL) {
        (void) close(fd);
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    return CTL_FINE;
}


/* more bytes: 1, 0 at the end, -1 after reporting */
static int
ctl_journal_fill(ctl_t *ctl, ctl_journal_file_t *file)
{
    int          n, number;
    const char  *why;

    n = gzread(file->gz, file->buf, sizeof(file->buf));
    why = gzerror(file->gz, &number);

    if (n < 0 || (number != Z_OK && number != Z_STREAM_END)) {
        ctl_fail(ctl, CTL_USAGE, "journal \"%s\" can't be read to its end: %s", file->path,
                 number == Z_ERRNO ? strerror(errno) : why);
        return -1;
    }

    file->at = 0;
    file->end = (size_t) n;

    return n > 0;
}


int
ctl_journal_next(ctl_t *ctl, ctl_journal_file_t *file)
{
    int     rc, any;
    char   *end;
    size_t  n, room;

    file->len = 0;
    file->whole = 1;
    any = 0;

    for ( ;; ) {
        if (file->at == file->end) {
            rc = ctl_journal_fill(ctl, file);

            if (rc < 0) {
                return -1;
            }

            if (rc == 0) {
                /* what has no line end was cut off while it was written */
                file->number += any;
                file->whole = 0;
                return any;
            }
        }

        end = memchr(file->buf + file->at, '\n', file->end - file->at);
        n = (end ? (size_t) (end - file->buf) : file->end) - file->at;
        room = SK_JOURNAL_LINE - file->len;

        if (n > room) {
            file->whole = 0;
        }

        any |= n > 0;
        memcpy(file->text + file->len, file->buf + file->at, n < room ? n : room);
        file->len += n < room ? n : room;
        file->at += n + (end != NULL);

        if (end == NULL) {
            continue;
        }

        file->number++;

        if (any) {
            file->text[file->len] = '\0';
            return 1;
        }
    }
}


void
ctl_journal_close(ctl_journal_file_t *file)
{
    if (file->gz) {
        (void) gzclose(file->gz);
        file->gz = NULL;
    }
}


ctl_line_e
ctl_journal_line(const ctl_journals_t *journals, const char *prefix,
    const ctl_journal_file_t *file, sk_journal_line_t *line)
{
    const sk_journal_key_t  *key;

    if (!file->whole || sk_journal_parse(line, file->text, file->len) != 0) {
        return CTL_LINE_UNSIGNED;
    }

    if (strlen(prefix) != line->prefix_len
        || memcmp(prefix, line->prefix, line->prefix_len) != 0)
    {
        return CTL_LINE_FOREIGN;
    }

    key = skb_journal_key(&journals->keys, line->key_id);

    if (key == NULL) {
        return CTL_LINE_NO_KEY;
    }

    return sk_journal_signed(key, file->text, file->len) ? CTL_LINE_SIGNED : CTL_LINE_UNSIGNED;
}
