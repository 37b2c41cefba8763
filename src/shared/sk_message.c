
/*
 * The stream entry, as the daemon reads it.  A field that lua/admit.lua cannot
 * have written makes the whole entry bad: it becomes a dead letter, with the
 * reason given here.
 */


#include <string.h>

#include "sk_id.h"
#include "sk_message.h"
#include "sk_utf8.h"


typedef int (*sk_message_field_pt)(sk_message_t *message, const sk_text_t *text);


typedef struct {
    const char           *name;
    sk_message_field_pt   parse;
    const char           *missing;
    const char           *repeated;
    const char           *bad;
} sk_message_field_t;


static int sk_message_v(sk_message_t *message, const sk_text_t *text);
static int sk_message_user(sk_message_t *message, const sk_text_t *text);
static int sk_message_activity(sk_message_t *message, const sk_text_t *text);
static int sk_message_quantity(sk_message_t *message, const sk_text_t *text);
static int sk_message_epoch(sk_message_t *message, const sk_text_t *text);
static int sk_message_seq(sk_message_t *message, const sk_text_t *text);
static int sk_message_order_no(sk_message_t *message, const sk_text_t *text);
static int sk_message_accepted_ms(sk_message_t *message, const sk_text_t *text);
static int sk_message_request_id(sk_message_t *message, const sk_text_t *text);
static int sk_message_ext(sk_message_t *message, const sk_text_t *text);
static void sk_message_copy(char *dst, const sk_text_t *text);


#define sk_message_field(name)                                                \
    { #name, sk_message_##name, "field " #name " is missing",                 \
      "field " #name " is given twice", "field " #name " is bad" }


/* the version is the first: of another one, nothing else is known */

static const sk_message_field_t  sk_message_fields[] = {
    { "v", sk_message_v, "field v is missing", "field v is given twice",
      "unknown version" },
    sk_message_field(user),
    sk_message_field(activity),
    sk_message_field(quantity),
    sk_message_field(epoch),
    sk_message_field(seq),
    sk_message_field(order_no),
    sk_message_field(accepted_ms),
    sk_message_field(request_id),
    sk_message_field(ext)
};


#define SK_MESSAGE_DIGITS  15           /* of epoch, seq and accepted_ms */
#define SK_MESSAGE_FIELDS  (sizeof(sk_message_fields) / sizeof(sk_message_fields[0]))


/* what a script counts: a double of Lua holds it exactly */

static int
sk_message_number(uint64_t *number, const sk_text_t *text)
{
    return text->len <= SK_MESSAGE_DIGITS ? sk_id_parse(text->data, text->len, number) : -1;
}


const char *
sk_message_parse(sk_message_t *message, const sk_text_t *fields, size_t n)
{
    size_t                     i, k;
    const sk_text_t           *value;
    const sk_message_field_t  *field;

    if (n % 2 != 0) {
        return "fields are not pairs";
    }

    memset(message, 0, sizeof(sk_message_t));

    for (k = 0; k < SK_MESSAGE_FIELDS; k++) {
        field = &sk_message_fields[k];
        value = NULL;

        for (i = 0; i < n; i += 2) {
            if (fields[i].len != strlen(field->name)
                || memcmp(fields[i].data, field->name, fields[i].len) != 0)
            {
                continue;
            }

            if (value != NULL) {
                return field->repeated;
            }

            value = &fields[i + 1];
        }

        if (value == NULL) {
            return field->missing;
        }

        if (field->parse(message, value) != 0) {
            return field->bad;
        }
    }

    return NULL;
}


static int
sk_message_v(sk_message_t *message, const sk_text_t *text)
{
    uint64_t  version;

    (void) message;

    return sk_id_parse(text->data, text->len, &version) == 0
           && version == SK_MESSAGE_VERSION ? 0 : -1;
}


static int
sk_message_user(sk_message_t *message, const sk_text_t *text)
{
    return sk_id_parse(text->data, text->len, &message->user);
}


static int
sk_message_activity(sk_message_t *message, const sk_text_t *text)
{
    return sk_id_parse(text->data, text->len, &message->activity);
}


static int
sk_message_quantity(sk_message_t *message, const sk_text_t *text)
{
    uint64_t  n;

    if (sk_id_parse(text->data, text->len, &n) != 0 || n > SK_QUANTITY_MAX) {
        return -1;
    }

    message->quantity = (uint32_t) n;

    return 0;
}


static int
sk_message_epoch(sk_message_t *message, const sk_text_t *text)
{
    return sk_message_number(&message->epoch, text);
}


static int
sk_message_seq(sk_message_t *message, const sk_text_t *text)
{
    return sk_message_number(&message->seq, text);
}


static int
sk_message_order_no(sk_message_t *message, const sk_text_t *text)
{
    sk_order_no_t  no;

    if (sk_order_no_parse(text->data, text->len, &no) != 0) {
        return -1;
    }

    sk_message_copy(message->order_no, text);

    return 0;
}


static int
sk_message_accepted_ms(sk_message_t *message, const sk_text_t *text)
{
    return sk_message_number(&message->accepted_ms, text);
}


static int
sk_message_request_id(sk_message_t *message, const sk_text_t *text)
{
    if (text->len != 0 && !sk_request_id_ok(text->data, text->len)) {
        return -1;
    }

    sk_message_copy(message->request_id, text);

    return 0;
}


static int
sk_message_ext(sk_message_t *message, const sk_text_t *text)
{
    if (text->len > SK_EXT_MAX || !sk_utf8_ok(text->data, text->len)) {
        return -1;
    }

    sk_message_copy(message->ext, text);
    message->ext_len = text->len;

    return 0;
}


/* The rest of the message is NUL already. */

static void
sk_message_copy(char *dst, const sk_text_t *text)
{
    if (text->len > 0) {
        memcpy(dst, text->data, text->len);
    }
}
