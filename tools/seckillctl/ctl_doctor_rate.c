/*
 * doctor, one sale: how long its orders take.  While it runs seckilld's own
 * figures tell; before that a batch is inserted as seckilld does it, timed, and
 * rolled back: nothing stays but a gap in the ids.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"

#define CTL_RATE_ROWS     1000
#define CTL_RATE_ROW_MAX  96            /* bytes of one row's text */
#define CTL_RATE_SECONDS  30            /* buyers ask for their result no longer */


/* no user, no activity and no purchase of a real sale: no key is in anybody's way */
static char *
ctl_rate_statement(const char *head, int orders, size_t rows)
{
    char      *text;
    size_t     i, len, size;
    uint32_t   user;

    size = strlen(head) + rows * CTL_RATE_ROW_MAX + 1;
    text = malloc(size);

    if (text == NULL) {
        return NULL;
    }

    len = (size_t) snprintf(text, size, "%s", head);

    for (i = 0; i < rows; i++) {
        user = (uint32_t) i * 2654435761u;      /* as spread out as buyers are */

        len += (size_t) (orders
            ? snprintf(text + len, size - len, "%c('doctor-%zu', %" PRIu32 ", 0, 0, 0, 1, '', "
                       "'doctor-%zu', 0, %zu)", i ? ',' : ' ', i, user, i, i)
            : snprintf(text + len, size - len, "%c(%" PRIu32 ", 0, 1)", i ? ',' : ' ', user));
    }

    return text;
}


static int
ctl_rate_insert(ctl_doctor_t *doctor, size_t rows, double *seconds)
{
    int      rc;
    char    *orders, *records;
    int64_t  began;
    MYSQL   *mysql;

    orders = ctl_rate_statement("INSERT INTO seckill_orders (order_no, user_id, product_id, "
                                "activity_id, seckill_price, quantity, ext, request_id, epoch, "
                                "seq) VALUES", 1, rows);
    records = ctl_rate_statement("INSERT INTO seckill_records (user_id, activity_id, status) "
                                 "VALUES", 0, rows);

    rc = orders && records ? ctl_sql(doctor->ctl, NULL, "START TRANSACTION")
         : ctl_fail(doctor->ctl, CTL_PARTLY, "out of memory");

    if (rc == CTL_FINE) {
        mysql = ctl_mysql(doctor->ctl);
        began = ctl_doctor_now_us();

        /* what is refused here is a right or a key, and has a line of its own */
        *seconds = mysql_query(mysql, orders) == 0 && mysql_query(mysql, records) == 0
                   ? (double) (ctl_doctor_now_us() - began) / 1e6 : -1;

        if (*seconds < 0) {
            ctl_doctor_tell(doctor, CTL_IS_WARNING, "rate", "see \"rights\" and \"writable\"",
                            "orders can't be inserted: %s", mysql_error(mysql));
        }

        rc = ctl_sql(doctor->ctl, NULL, "ROLLBACK");
    }

    free(orders);
    free(records);

    return rc;
}


int
ctl_doctor_rate(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    int          rc;
    double       rate, seconds;
    size_t       rows;
    const char  *how;

    rate = doctor->rate;
    how = "by seckilld's own figures";

    if (live->now_ms < live->start_ms) {
        rows = ctl_config(doctor->ctl)->consumer.batch;
        rows = rows < CTL_RATE_ROWS ? rows : CTL_RATE_ROWS;
        how = "by a batch that was rolled back";

        rc = ctl_rate_insert(doctor, rows, &seconds);

        if (rc != CTL_FINE || seconds < 0) {
            return rc;
        }

        /* then it is made to last: seckilld knows how long its commits take */
        rate = (double) rows / (seconds + doctor->commit + 1e-6);
    }

    if (rate <= 0) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "rate", "look again when orders were written; "
                        "doctor measures before the start", "not known: the sale runs, and "
                        "seckilld has not written enough yet");
        return CTL_FINE;
    }

    seconds = (double) live->stock_limit / rate;

    ctl_doctor_tell(doctor, seconds > CTL_RATE_SECONDS ? CTL_IS_WARNING : CTL_IS_OK, "rate",
                    "a larger [consumer] batch, a quicker disk: buyers ask for 30 s only",
                    "%.0f orders/s %s: %" PRIu64 " take %.1f s", rate, how, live->stock_limit,
                    seconds);

    return CTL_FINE;
}
