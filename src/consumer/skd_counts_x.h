/*
 * Every counter of the daemon: name in C, metric, labels, help.  Those of one
 * metric stand together.
 */

SKD_COUNT(ORDERS,          "seckilld_purchases_total", "{result=\"order\"}",
          "Purchases settled, by what became of them.")
SKD_COUNT(SAME,            "seckilld_purchases_total", "{result=\"same\"}", NULL)
SKD_COUNT(EXTRA,           "seckilld_purchases_total", "{result=\"extra\"}", NULL)
SKD_COUNT(DEAD,            "seckilld_purchases_total", "{result=\"dead\"}", NULL)
SKD_COUNT(CONFLICT,        "seckilld_retries_total", "{reason=\"conflict\"}",
          "Transactions run again, by reason.")
SKD_COUNT(DUPLICATE,       "seckilld_retries_total", "{reason=\"duplicate\"}", NULL)
SKD_COUNT(DATA,            "seckilld_retries_total", "{reason=\"data\"}", NULL)
SKD_COUNT(SPLIT,           "seckilld_retries_total", "{reason=\"split\"}", NULL)
SKD_COUNT(REDIS_LOST,      "seckilld_outages_total", "{server=\"redis\"}",
          "Times a server could not be used.")
SKD_COUNT(MYSQL_LOST,      "seckilld_outages_total", "{server=\"mysql\"}", NULL)
SKD_COUNT(CLAIMED,         "seckilld_claimed_total", "",
          "Purchases taken over from consumers that are gone.")
SKD_COUNT(LOOKUP_SUCCESS,  "seckilld_lookups_total", "{result=\"success\"}",
          "Lost results looked up in MySQL, by answer.")
SKD_COUNT(LOOKUP_FAILED,   "seckilld_lookups_total", "{result=\"failed\"}", NULL)
SKD_COUNT(LOOKUP_NONE,     "seckilld_lookups_total", "{result=\"none\"}", NULL)
SKD_COUNT(CANCELLED,       "seckilld_cancelled_orders_total", "",
          "Unpaid orders cancelled.")
SKD_COUNT(PAUSED,          "seckilld_data_loss_total", "",
          "Sales found with live data older than what was known of them.")
SKD_COUNT(UNITS_WRONG,     "seckilld_units_wrong_total", "",
          "Times a sale stopped because it would sell units that were never reserved.")
SKD_COUNT(SURPLUS,         "seckilld_surplus_buyers_total", "",
          "Sales found with more buyers in Redis than were counted.")
SKD_COUNT(FORGOTTEN,       "seckilld_forgotten_purchases_total", "",
          "Purchases of a life before a restore that Redis does not know: not written.")
SKD_COUNT(ABSENT,          "seckilld_settle_waits_total", "",
          "Sales not settled because buyers in Redis have no order.")
SKD_COUNT(SETTLED,         "seckilld_settled_sales_total", "", "Sales settled after their end.")
SKD_COUNT(JUMPS_REDIS,     "seckilld_clock_jumps_total", "{server=\"redis\"}",
          "Times a server's clock was set.")
SKD_COUNT(JUMPS_MYSQL,     "seckilld_clock_jumps_total", "{server=\"mysql\"}", NULL)

#define SKD_DUTY(name, label, help)  SKD_COUNT(FAILED_##name, "seckilld_keeper_failures_total", \
                                               "{duty=\"" label "\"}", help)
#include "skd_duties_x.h"
#undef SKD_DUTY

SKD_COUNT(ALARMS,          "seckilld_on_dead_total", "{result=\"run\"}",
          "Commands of on_dead.")
SKD_COUNT(ALARMS_DROPPED,  "seckilld_on_dead_total", "{result=\"dropped\"}", NULL)
