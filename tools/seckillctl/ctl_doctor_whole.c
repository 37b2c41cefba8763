/*
 * doctor, one sale: every key of it is there, and holds what it must.
 */

#include <string.h>

#include "ctl_doctor.h"
#include "ctl_whole.h"


int
ctl_doctor_whole(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    int   rc;
    char  status[CTL_WHOLE_MAX], why[CTL_WHOLE_MAX];

    rc = ctl_whole_read(doctor->ctl, live->activity, status, why);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (status[0] == '\0') {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "whole", "look at the rights of the tool's user",
                        "not known, %s", why);

    } else if (strcmp(status, "whole") == 0) {
        ctl_doctor_tell(doctor, CTL_IS_OK, "whole", "", "stock, buyers and stream are there");

    } else {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "whole", strcmp(status, "eligible") == 0
                        ? "load the registered users again: until then nothing is sold"
                        : "seckillctl restore ID", "Redis lost data of the sale: %s", status);
    }

    return CTL_FINE;
}
