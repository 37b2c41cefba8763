/*
 * doctor, the MySQL server's defaults for new sessions.  Ours set what they
 * need by themselves (skb_session.c); the shop's other programs may not.
 */

#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"
#include "skb_session.h"


static const skb_session_row_t *
ctl_doctor_default_row(const char *name)
{
    size_t  i;

    for (i = 0; i < skb_session_rows_count; i++) {
        if (strcmp(skb_session_rows[i].name, name) == 0) {
            return &skb_session_rows[i];
        }
    }

    return NULL;
}


int
ctl_doctor_defaults(ctl_doctor_t *doctor)
{
    int                       rc, told;
    char                      names[512];
    size_t                    i, len, harmful;
    MYSQL_ROW                 row;
    MYSQL_RES                *res;
    const skb_session_row_t  *known;

    len = 0;

    for (i = 0; i < skb_session_rows_count; i++) {
        len += (size_t) snprintf(names + len, sizeof(names) - len, "%s'%s'", i > 0 ? "," : "",
                                 skb_session_rows[i].name);
    }

    rc = ctl_sql(doctor->ctl, &res, "SHOW GLOBAL VARIABLES WHERE Variable_name IN (%s)", names);
    if (rc != CTL_FINE) {
        return rc;
    }

    harmful = 0;
    told = 0;

    while ((row = mysql_fetch_row(res)) != NULL) {
        known = row[0] && row[1] ? ctl_doctor_default_row(row[0]) : NULL;

        if (known == NULL) {
            continue;
        }

        if (strcmp(known->name, "sql_mode") == 0) {
            told = 1;
        }

        if (skb_session_harmful(known, row[1])) {
            harmful++;
            ctl_doctor_tell(doctor, CTL_IS_WARNING, "defaults", "SET GLOBAL, and in my.cnf: "
                            "seckilld and this tool set their own, the shop's programs may not",
                            "%s is %s: %s", known->name, row[1][0] ? row[1] : "empty",
                            known->harm);
        }
    }

    mysql_free_result(res);

    if (harmful == 0) {
        ctl_doctor_tell(doctor, told ? CTL_IS_OK : CTL_IS_WARNING, "defaults",
                        "look at the server's variables", "of new sessions: %s",
                        told ? "no harm to other programs" : "the server does not tell");
    }

    return CTL_FINE;
}
