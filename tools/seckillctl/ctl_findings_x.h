/*
 * Every way to be on the wrong side of the books, in the order they are told:
 * name, word, what it means.
 */

CTL_FINDING(LOST,       "lost",          "bought, and nothing became of it")
CTL_FINDING(VANISHED,   "vanished",      "accepted by a node, unknown to Redis and MySQL")
CTL_FINDING(MAYBE,      "maybe",         "may have bought: a node asked, and Redis never answered")
CTL_FINDING(SECOND,     "second",        "a second purchase, acknowledged but booked nowhere")
CTL_FINDING(UNBOOKED,   "unbooked",      "failed, and the units are booked nowhere")
CTL_FINDING(CLOSED,     "closed_letter", "a dead letter whose units are booked already")
CTL_FINDING(LETTER,     "dead_letter",   "a dead letter waits for a decision")
CTL_FINDING(NOT_MEMBER, "not_member",    "bought, but order_users does not know")
CTL_FINDING(NO_RESULT,  "no_result",     "decided, but the result is gone")
CTL_FINDING(CONTRADICTION, "contradiction", "Redis and MySQL tell different stories")
