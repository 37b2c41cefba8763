/*
 * doctor, the tables in MySQL: what is narrower, missing or other than sql/ makes it.
 */

#include "ctl_backend.h"
#include "ctl_doctor.h"
#include "skb_schema.h"


static void
ctl_doctor_schema_tell(void *data, const char *wrong)
{
    ctl_doctor_tell(data, CTL_IS_WRONG, "schema", "seckillctl schema apply; what another program "
                    "made or changed: ALTER TABLE, see sql/", "%s", wrong);
}


int
ctl_doctor_schema(ctl_doctor_t *doctor)
{
    int     told;
    MYSQL  *mysql;

    mysql = ctl_mysql(doctor->ctl);
    told = skb_schema_look(mysql, 0, ctl_doctor_schema_tell, doctor);

    if (told < 0) {
        return ctl_fail(doctor->ctl, CTL_UNREACHABLE, "MySQL: %s", mysql_error(mysql));
    }

    if (told == 0) {
        ctl_doctor_tell(doctor, CTL_IS_OK, "schema", "", "all tables, columns and unique keys are "
                        "as sql/ makes them");
    }

    return CTL_FINE;
}
