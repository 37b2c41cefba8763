/*
 * libmicrohttpd on a thread of its own: a few connections, short ones.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_http.h"
#include "skd_stats.h"
#include "skd_trouble.h"

#define SKD_HTTP_CONNECTIONS  16
#define SKD_HTTP_SECONDS      5         /* that a connection may idle */
#define SKD_HTTP_MEMORY       (32 * 1024)

struct skd_http_s {
    struct MHD_Daemon   *daemon;
    const skb_config_t  *config;
    skd_healthy_pt       healthy;
};


/* text is freed with the response. */
static enum MHD_Result
skd_http_answer(struct MHD_Connection *connection, unsigned status, char *text,
    const char *type)
{
    enum MHD_Result       rc = MHD_NO;
    struct MHD_Response  *response;

    if (text == NULL) {
        return MHD_NO;
    }

    response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);

    if (response == NULL) {
        free(text);
        return MHD_NO;
    }

    if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES
        && MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store")
           == MHD_YES
        && (status != MHD_HTTP_METHOD_NOT_ALLOWED
            || MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD")
               == MHD_YES))
    {
        rc = MHD_queue_response(connection, status, response);
    }

    MHD_destroy_response(response);

    return rc;
}


static enum MHD_Result
skd_http_plain(struct MHD_Connection *connection, unsigned status, const char *text)
{
    return skd_http_answer(connection, status, strdup(text), "text/plain; charset=utf-8");
}


/* "trouble", and a line for each thing that the keeper can't do; NULL: there is none. */
static char *
skd_http_troubles(void)
{
    int             failed;
    char           *text = NULL;
    FILE           *out;
    size_t          n, len;
    skd_trouble_t   troubles[SKD_TROUBLES_MAX];

    n = skd_troubles_told(troubles);
    out = n > 0 ? open_memstream(&text, &len) : NULL;

    if (out == NULL) {
        return NULL;
    }

    fputs("trouble\n", out);

    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%s activity=%" PRIu64 " order_id=%" PRIu64 " tries=%u\n",
                skd_duty_name(troubles[i].duty), troubles[i].activity, troubles[i].order,
                troubles[i].tries);
    }

    failed = ferror(out);

    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }

    return text;
}


/* Alive is not the same as useful: a daemon that waits for a server is healthy and says so. */
static enum MHD_Result
skd_http_health(const skd_http_t *http, struct MHD_Connection *connection)
{
    char  *troubles;

    if (!http->healthy()) {
        return skd_http_plain(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "stuck\n");
    }

    if (!skd_server_is_up(SKD_SERVER_REDIS) || !skd_server_is_up(SKD_SERVER_MYSQL)) {
        return skd_http_plain(connection, MHD_HTTP_OK, "waiting\n");
    }

    troubles = skd_http_troubles();

    if (troubles != NULL) {
        return skd_http_answer(connection, MHD_HTTP_OK, troubles, "text/plain; charset=utf-8");
    }

    return skd_http_plain(connection, MHD_HTTP_OK, "ok\n");
}


static enum MHD_Result
skd_http_handle(void *data, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_size,
    void **context)
{
    skd_http_t  *http = data;

    (void) version;
    (void) upload;

    /* the first call comes with the headers, those after it with the body */
    if (*context == NULL) {
        *context = http;
        return MHD_YES;
    }

    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }

    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return skd_http_plain(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "method not allowed\n");
    }

    if (strcmp(url, "/metrics") == 0) {
        return skd_http_answer(connection, MHD_HTTP_OK, skd_metrics_text(http->config),
                               "text/plain; version=0.0.4; charset=utf-8");
    }

    if (strcmp(url, "/healthz") == 0) {
        return skd_http_health(http, connection);
    }

    return skd_http_plain(connection, MHD_HTTP_NOT_FOUND, "not found\n");
}


skd_http_t *
skd_http_start(const skb_config_t *config, skd_healthy_pt healthy)
{
    skd_http_t          *http;
    struct sockaddr_in   address;

    if (config->http_port == 0) {
        return NULL;
    }

    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_port = htons(config->http_port);
    http = calloc(1, sizeof(skd_http_t));

    if (http != NULL && inet_pton(AF_INET, config->http_host, &address.sin_addr) == 1) {
        http->healthy = healthy;
        http->config = config;
        errno = 0;
        http->daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0,
            NULL, NULL, skd_http_handle, http,
            MHD_OPTION_SOCK_ADDR, (struct sockaddr *) &address,
            MHD_OPTION_CONNECTION_LIMIT, (unsigned) SKD_HTTP_CONNECTIONS,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned) SKD_HTTP_SECONDS,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) SKD_HTTP_MEMORY,
            MHD_OPTION_END);
    }

    if (http == NULL || http->daemon == NULL) {
        skb_log(SKB_ERROR, "metrics can't be served", "address=%s:%u error=\"%s\"",
                config->http_host, config->http_port, strerror(errno));
        free(http);
        return NULL;
    }

    return http;
}


void
skd_http_stop(skd_http_t *http)
{
    if (http != NULL) {
        MHD_stop_daemon(http->daemon);
        free(http);
    }
}
