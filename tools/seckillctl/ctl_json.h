/*
 * JSON on stdout through yajl_gen.  A key of NULL is for the elements of an
 * array.  Ids are strings (they pass 2^53), counts are numbers.
 */

#ifndef _CTL_JSON_H_INCLUDED_
#define _CTL_JSON_H_INCLUDED_

#include <stdint.h>
#include <yajl/yajl_gen.h>

#include "ctl.h"

typedef struct {
    yajl_gen  gen;                      /* NULL when memory failed: all calls do nothing */
    int       failed;
} ctl_json_t;

/* The one answer of this run: marks it as given. */
void ctl_json_begin(ctl_t *ctl, ctl_json_t *json);

/* "error", when ctl_fail() was called: what is missing from the answer, and why. */
void ctl_json_error(ctl_json_t *json, const ctl_t *ctl);

/* Prints the text and a line end, frees.  Returns 0, or -1 when it is not whole. */
int ctl_json_end(ctl_json_t *json);

void ctl_json_map(ctl_json_t *json, const char *key);
void ctl_json_map_end(ctl_json_t *json);
void ctl_json_array(ctl_json_t *json, const char *key);
void ctl_json_array_end(ctl_json_t *json);

/* text NULL is null */
void ctl_json_text(ctl_json_t *json, const char *key, const char *text);
void ctl_json_id(ctl_json_t *json, const char *key, uint64_t id);
void ctl_json_count(ctl_json_t *json, const char *key, uint64_t n);

void ctl_json_signed(ctl_json_t *json, const char *key, int64_t n);

/* n < 0 is null: unknown is not 0 */
void ctl_json_known(ctl_json_t *json, const char *key, int64_t n);
void ctl_json_real(ctl_json_t *json, const char *key, double value, int digits);
void ctl_json_bool(ctl_json_t *json, const char *key, int value);

#endif /* _CTL_JSON_H_INCLUDED_ */
