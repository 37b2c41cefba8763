/*
 * The keeper's duties: name in C, the label "duty" of metrics and log, and the help
 * of the counter of their failures, with the first one.
 */

SKD_DUTY(REGISTRY,  "registry", "Times the keeper failed, for all, an activity or an order.")
SKD_DUTY(LOOKUP,    "lookup", NULL)
SKD_DUTY(POLICY,    "policy", NULL)
SKD_DUTY(SCHEMA,    "schema", NULL)
SKD_DUTY(TOKEN_KEY, "signing_key", NULL)
SKD_DUTY(WATCH,     "watch", NULL)
SKD_DUTY(LOST,      "lost", NULL)
SKD_DUTY(CLOCKS,    "clocks", NULL)
SKD_DUTY(UNITS,     "units", NULL)
SKD_DUTY(PROMISE,   "promise", NULL)
SKD_DUTY(SETTLE,    "settle", NULL)
SKD_DUTY(UNPAID,    "unpaid", NULL)
SKD_DUTY(RELEASE,   "release", NULL)
SKD_DUTY(BACKLOG,   "backlog", NULL)
