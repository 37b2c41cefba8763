/*
 * Text from outside, from buyers, Redis, MySQL and files, for a terminal: bytes
 * that a terminal obeys, that turn the order of the text around, or that are no
 * UTF-8 are shown and not sent.
 */

#ifndef _CTL_TEXT_H_INCLUDED_
#define _CTL_TEXT_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

/* Writes at most size bytes, NUL included; what does not fit ends in "...".  Returns buf. */
const char *ctl_text_show(char *buf, size_t size, const char *text, size_t len);

/*
 * The same in a buffer of its own that the next few calls leave alone, for the
 * arguments of one printf().  text may be NULL.
 */
const char *ctl_shown(const char *text);

/* To stdout, however long it is. */
void ctl_text_print(const char *text, size_t len);

/* The code of a good character of n bytes. */
uint32_t ctl_text_code(const char *text, size_t n);

/* Bytes of the character at text that must not reach a terminal as it is; 0: it may. */
size_t ctl_text_odd(const char *text, size_t len);

#endif /* _CTL_TEXT_H_INCLUDED_ */
