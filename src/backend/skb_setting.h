/*
 * The table of settings: section, name, bounds, and the function that puts a
 * value into its field.
 */

#ifndef _SKB_SETTING_H_INCLUDED_
#define _SKB_SETTING_H_INCLUDED_

#include "skb_config.h"

typedef struct skb_setting_s  skb_setting_t;

/* Stores a value; returns NULL, or what is wrong with it as a text valid until the next call. */
typedef const char *(*skb_set_pt)(const skb_setting_t *setting, skb_config_t *config,
    const char *value);

struct skb_setting_s {
    const char  *section;
    const char  *name;
    skb_set_pt   set;
    size_t       offset;                /* of the field in skb_config_t */
    uint64_t     min;                   /* of a number; times in milliseconds */
    uint64_t     max;                   /* of a number, or bytes of a text's field */
};

/* At most 64 of them. */
extern const skb_setting_t  skb_settings[];
extern const size_t         skb_settings_count;

#endif /* _SKB_SETTING_H_INCLUDED_ */
