/*
 * See the header.
 */

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "ctl_doctor.h"
#include "ctl_page.h"

#define CTL_PAGE_MS  2000L


static size_t
ctl_page_write(char *text, size_t size, size_t n, void *data)
{
    char        *more;
    ctl_page_t  *page;

    page = data;
    n *= size;

    if (n > CTL_PAGE_MAX - page->len) {
        return 0;
    }

    more = realloc(page->text, page->len + n + 1);

    if (more == NULL) {
        return 0;
    }

    memcpy(more + page->len, text, n);
    page->text = more;
    page->len += n;
    more[page->len] = '\0';

    return n;
}


static size_t
ctl_page_header(char *line, size_t size, size_t n, void *data)
{
    char         date[64];
    ctl_page_t  *page;

    page = data;
    n *= size;

    if (n > 6 && n < sizeof(date) && strncasecmp(line, "Date:", 5) == 0) {
        memcpy(date, line + 5, n - 5);
        date[n - 5] = '\0';
        page->date_ms = (int64_t) curl_getdate(date, NULL);
        page->date_ms = page->date_ms < 0 ? -1 : page->date_ms * 1000;
    }

    return n;
}


int
ctl_page_get(ctl_page_t *page, const char *url, const char *at)
{
    CURL               *curl;
    char                to[CTL_ADDRESS_MAX + 8];
    CURLcode            rc;
    const char         *address;
    struct curl_slist  *connect_to;

    memset(page, 0, sizeof(*page));
    page->date_ms = -1;
    connect_to = NULL;
    address = NULL;
    curl = curl_easy_init();

    if (curl == NULL) {
        strcpy(page->error, "out of memory");
        return -1;
    }

    if (at) {
        snprintf(to, sizeof(to), strchr(at, ':') ? "::[%s]:" : "::%s:", at);
        connect_to = curl_slist_append(NULL, to);
        curl_easy_setopt(curl, CURLOPT_CONNECT_TO, connect_to);
    }

    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, CTL_PAGE_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ctl_page_write);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, page);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, ctl_page_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, page);

    page->began_ms = ctl_doctor_now();
    rc = curl_easy_perform(curl);
    page->ended_ms = ctl_doctor_now();

    if (rc != CURLE_OK) {
        snprintf(page->error, sizeof(page->error), "%s", curl_easy_strerror(rc));
    }

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &page->status);

    if (curl_easy_getinfo(curl, CURLINFO_PRIMARY_IP, &address) == CURLE_OK && address) {
        snprintf(page->address, sizeof(page->address), "%s", address);
    }

    curl_easy_cleanup(curl);
    curl_slist_free_all(connect_to);

    return rc == CURLE_OK ? 0 : -1;
}


void
ctl_page_free(ctl_page_t *page)
{
    free(page->text);
    page->text = NULL;
}


static int
ctl_page_json(const ctl_page_t *page, const char *path, const char *path2, double *value)
{
    int          rc;
    char         error[128];
    yajl_val     root, found;
    const char  *names[] = { path, path2, NULL };

    root = yajl_tree_parse(page->text, error, sizeof(error));

    if (root == NULL) {
        return -1;
    }

    found = yajl_tree_get(root, names, yajl_t_number);
    rc = found && YAJL_IS_DOUBLE(found) ? 0 : -1;

    if (rc == 0) {
        *value = YAJL_GET_DOUBLE(found);
    }

    yajl_tree_free(root);

    return rc;
}


int
ctl_page_figure(const ctl_page_t *page, const char *name, const char *path, const char *path2,
    double *value)
{
    char        *end;
    size_t       len;
    const char  *line;

    if (page->text == NULL) {
        return -1;
    }

    if (page->text[0] == '{') {
        return path ? ctl_page_json(page, path, path2, value) : -1;
    }

    len = strlen(name);

    for (line = page->text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, len) == 0 && line[len] == ' ') {
            *value = strtod(line + len + 1, &end);
            return end != line + len + 1 ? 0 : -1;
        }
    }

    return -1;
}
