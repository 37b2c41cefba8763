/*
 * Every verdict, declared once: what the funnel can say to a buyer.
 *
 * script  the digit by which lua/admit.lua says it, 0 where it never does
 * code    "code" of the JSON body
 * HTTP    status by default / with "seckill_rest_status on"
 * word    its name in variables, metrics and documents
 *
 * Codes 0, 1, 2 and 40001..40005 with their Chinese messages and status 200
 * are a given interface.  t/unit checks that admit.lua says the same digits.
 */

/*         name              script  code   HTTP REST  word                zh                          en */
SK_VERDICT(ACCEPTED,          '1',      0,  200, 202, "accepted",         "排队中",                   "queueing")
SK_VERDICT(QUEUEING,            0,      0,  200, 202, "queueing",         "排队中",                   "queueing")
SK_VERDICT(SUCCESS,             0,      1,  200, 200, "success",          "抢购成功",                 "order placed")
SK_VERDICT(FAILED,              0,      2,  200, 200, "failed",           "抢购失败",                 "order failed")
SK_VERDICT(FACTS,               0,      0,  200, 200, "facts",            "成功",                     "ok")
SK_VERDICT(NOT_STARTED,       '4',  40001,  200, 403, "not_started",      "活动未开始",               "not started")
SK_VERDICT(UNKNOWN_ACTIVITY,    0,  40001,  200, 403, "unknown_activity", "活动未开始",               "not started")
SK_VERDICT(ENDED,             '5',  40002,  200, 403, "ended",            "活动已结束",               "ended")
SK_VERDICT(LIMITED,           '8',  40003,  200, 429, "limited",          "请求过于频繁",             "too many requests")
SK_VERDICT(REPEAT,            '2',  40004,  200, 409, "repeat",           "您已参与过该活动",         "already taken part")
SK_VERDICT(SOLD_OUT,          '3',  40005,  200, 410, "sold_out",         "商品已抢完",               "sold out")
SK_VERDICT(NO_RECORD,           0,  40006,  200, 404, "no_record",        "未参与该活动",             "no purchase found")
SK_VERDICT(NOT_ELIGIBLE,      '6',  40007,  200, 403, "not_eligible",     "未预约该活动",             "not registered")
SK_VERDICT(BAD_REQUEST,       '9',  40000,  400, 400, "bad_request",      "请求参数错误",             "bad request")
SK_VERDICT(UNAUTHORIZED,        0,  40100,  401, 401, "unauthorized",     "请先登录",                 "login required")
SK_VERDICT(NOT_FOUND,           0,  40400,  404, 404, "not_found",        "地址不存在",               "not found")
SK_VERDICT(METHOD,              0,  40500,  405, 405, "method",           "请求方法不支持",           "method not allowed")
SK_VERDICT(TIMEOUT,             0,  40800,  408, 408, "timeout",          "请求超时",                 "request timed out")
SK_VERDICT(TOO_LARGE,           0,  41300,  413, 413, "too_large",        "请求体过大",               "request body too large")
SK_VERDICT(UNKNOWN,             0,  50301,  503, 503, "unknown",          "系统繁忙，请查询结果",     "please check the result")
SK_VERDICT(BUSY,              '0',  50302,  503, 503, "busy",             "系统繁忙，请稍后再试",     "please try again")
SK_VERDICT(CLOSED,            '7',  50303,  503, 503, "closed",           "活动太火爆，请稍后再试",   "closed for now")
