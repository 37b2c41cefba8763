/*
 * What every unit test includes: cmocka and what cmocka wants before it.
 */

#ifndef _UNIT_H_INCLUDED_
#define _UNIT_H_INCLUDED_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define unit_count(array)  (sizeof(array) / sizeof((array)[0]))

/*
 * A copy in a heap block of exactly its size, so that ASan sees any read beyond
 * the end.  Freed by the caller.  Not inlined: gcc would follow lengths through
 * failed assertions and warn of them.
 */
__attribute__((noinline, unused)) static char *
unit_copy(const char *text, size_t len)
{
    char  *copy;

    copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);

    if (len > 0) {
        memcpy(copy, text, len);
    }

    return copy;
}

#endif /* _UNIT_H_INCLUDED_ */
