/*
 * Log lines of the daemon and the tools: logfmt on standard error, one write
 * per line, so that lines of several threads never mix.
 *
 *   time=2026-11-29T15:20:00.123Z level=info msg="orders stored" activity=1
 */

#ifndef _SKB_LOG_H_INCLUDED_
#define _SKB_LOG_H_INCLUDED_

typedef enum {
    SKB_DEBUG,
    SKB_INFO,
    SKB_NOTICE,
    SKB_WARN,
    SKB_ERROR
} skb_level_e;

/* Lines below this level are not written; SKB_INFO at first. */
void skb_log_level(skb_level_e level);

/* "debug" "info" "notice" "warn" "error"; returns 0 or -1. */
int skb_log_level_parse(const char *text, skb_level_e *level);

/*
 * From now on lines go to this file, opened anew each time; "" is standard
 * error as it was at first.  Returns 0, or an error number: nothing has changed.
 */
int skb_log_file(const char *path);

/*
 * msg is put in quotes; fmt and its arguments make the rest of the line: pairs
 * like "activity=%" PRIu64 " error=%s".  Text that others chose goes through
 * skb_log_quote() first.  Lines are cut at 1 KiB.  errno is kept.
 */
void skb_log_msg(skb_level_e level, const char *msg);
void skb_log(skb_level_e level, const char *msg, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * text as a quoted logfmt value, with '"', '\\' and control characters escaped,
 * cut to fit size; returns buf.  A NULL text is "".
 */
char *skb_log_quote(char *buf, unsigned long size, const char *text);

#endif /* _SKB_LOG_H_INCLUDED_ */
