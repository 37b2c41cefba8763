/*
 * The loopback HTTP server of metrics and health.
 */

#ifndef _SKD_HTTP_H_INCLUDED_
#define _SKD_HTTP_H_INCLUDED_

#include <stdint.h>

#include "skb_config.h"

/* 1 when every worker shows life. */
typedef int (*skd_healthy_pt)(void);

typedef struct skd_http_s  skd_http_t;

/*
 * Listens on "listen" of [http].  Returns NULL when it is off, or when it can't,
 * with a line in the log: sales go on without metrics.
 */
skd_http_t *skd_http_start(const skb_config_t *config, skd_healthy_pt healthy);

/* NULL is fine. */
void skd_http_stop(skd_http_t *http);

/* The metrics as text, to free(), or NULL: no memory. */
char *skd_metrics_text(const skb_config_t *config);

#endif /* _SKD_HTTP_H_INCLUDED_ */
