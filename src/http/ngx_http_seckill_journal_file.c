
/*
 * The journal's file.  nginx opens it, and opens it again at USR1, with its own
 * list of files; before that the file is made here, closed to others.
 * One write(2) per batch at the end of the file: workers do not mix.
 *
 * What can't be written does not stop the sale.  The lines are counted, a timer
 * tries again, and the first write that succeeds says how many are missing.
 */


#include "ngx_http_seckill_journal.h"
#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_load.h"


#define NGX_HTTP_SECKILL_JOURNAL_MODE   0640
#define NGX_HTTP_SECKILL_JOURNAL_TRY    1000    /* ms between tries */
#define NGX_HTTP_SECKILL_JOURNAL_FIRST  20

/* keys a worker keeps prepared; more than a rotation needs */
#define NGX_HTTP_SECKILL_JOURNAL_KEYS   8


typedef struct {
    u_char             key[NGX_HTTP_SECKILL_HMAC_KEY];
    sk_journal_key_t   signs;
} ngx_http_seckill_journal_key_t;


/* of this worker; points into the configuration in force */
typedef struct {
    ngx_open_file_t   *file;            /* NULL: there is no journal */
    ngx_array_t       *confs;           /* of locations, one for each shop */
    ngx_uint_t         started;         /* timers may be used */
    ngx_event_t        timer;
    ngx_msec_t         wait;            /* until its next look */

    ngx_uint_t         failing;
    ngx_uint_t         lost;            /* lines, since the first failure */
    uint64_t           from_ms;
    ngx_msec_t         counted;         /* of the gap's time, up to here */
} ngx_http_seckill_journal_t;


static ngx_int_t ngx_http_seckill_journal_look(ngx_str_t *name);
static void ngx_http_seckill_journal_timer(ngx_event_t *ev);
static void ngx_http_seckill_journal_arm(ngx_msec_t wait);
static ngx_uint_t ngx_http_seckill_journal_open(
    ngx_http_seckill_loc_conf_t *conf);
static sk_journal_key_t *ngx_http_seckill_journal_conf_key(
    ngx_http_seckill_loc_conf_t *conf, ngx_uint_t load);
static ssize_t ngx_http_seckill_journal_put_line(
    ngx_http_seckill_loc_conf_t *conf, sk_journal_line_t *line);
static void ngx_http_seckill_journal_failed(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines, ngx_err_t err, const char *why);
static ngx_int_t ngx_http_seckill_journal_mend(void);
static void ngx_http_seckill_journal_tell(ngx_http_seckill_loc_conf_t *conf);
static uint64_t ngx_http_seckill_journal_now(void);


static ngx_http_seckill_journal_t  ngx_http_seckill_the_journal;

static ngx_http_seckill_journal_key_t
    ngx_http_seckill_journal_keys[NGX_HTTP_SECKILL_JOURNAL_KEYS];


ngx_uint_t
ngx_http_seckill_journal_on(void)
{
    return ngx_http_seckill_the_journal.file != NULL;
}


/* a configuration comes into force; workers are made of the master later */

ngx_int_t
ngx_http_seckill_journal_init_module(ngx_cycle_t *cycle)
{
    ngx_http_seckill_main_conf_t  *smcf;

    smcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_seckill_module);

    ngx_http_seckill_the_journal.file = smcf ? smcf->journal : NULL;
    ngx_http_seckill_the_journal.confs = smcf ? &smcf->journal_confs : NULL;

    if (ngx_http_seckill_the_journal.started) {
        /* "master_process off": this process goes on with the new one */
        ngx_http_seckill_journal_arm(1);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_seckill_journal_init_process(ngx_cycle_t *cycle)
{
    if (ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE)
    {
        ngx_http_seckill_the_journal.started = 1;
        ngx_http_seckill_journal_arm(1);
    }

    return NGX_OK;
}


void
ngx_http_seckill_journal_exit(void)
{
    ngx_uint_t  i;

    if (ngx_http_seckill_the_journal.failing) {
        /* the last chance to say what is missing */
        (void) ngx_http_seckill_journal_mend();
    }

    for (i = 0; i < NGX_HTTP_SECKILL_JOURNAL_KEYS; i++) {
        sk_journal_key_done(&ngx_http_seckill_journal_keys[i].signs);
    }

    ngx_explicit_memzero(ngx_http_seckill_journal_keys,
                         sizeof(ngx_http_seckill_journal_keys));
}


/* where it can't be done nginx itself says why, when it opens the file */

ngx_int_t
ngx_http_seckill_journal_prepare(ngx_str_t *name, ngx_log_t *log)
{
    ngx_fd_t         fd;
    ngx_int_t        rc;
    ngx_file_info_t  fi;

    /* a FIFO or a device must not hold us */

    fd = open((const char *) name->data,
              O_WRONLY|O_APPEND|O_CREAT|O_NONBLOCK|O_NOCTTY|O_CLOEXEC,
              NGX_HTTP_SECKILL_JOURNAL_MODE);

    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      ngx_open_file_n " \"%V\" failed", name);
        return NGX_ERROR;
    }

    rc = NGX_OK;

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "seckill_journal \"%V\" is not a regular file", name);
        rc = NGX_ERROR;

    } else if ((ngx_file_access(&fi) & ~NGX_HTTP_SECKILL_JOURNAL_MODE)
               && fchmod(fd, ngx_file_access(&fi)
                             & NGX_HTTP_SECKILL_JOURNAL_MODE)
                  == -1)
    {
        ngx_log_error(NGX_LOG_WARN, log, ngx_errno, "seckill_journal \"%V\" "
                      "may be read by others", name);
    }

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      ngx_close_file_n " \"%V\" failed", name);
    }

    return rc;
}


/* opened by mistake a FIFO would hold a process for ever, a device take lines */

static ngx_int_t
ngx_http_seckill_journal_look(ngx_str_t *name)
{
    ngx_file_info_t  fi;

    return ngx_file_info(name->data, &fi) == NGX_FILE_ERROR
           || ngx_is_file(&fi) ? NGX_OK : NGX_ERROR;
}


/* nginx is about to open the file again, or to end */

void
ngx_http_seckill_journal_flush(ngx_open_file_t *file, ngx_log_t *log)
{
    ngx_int_t                      rc;
    ngx_str_t                     *name;
    ngx_uint_t                     i, ends;
    ngx_array_t                   *confs;
    ngx_http_seckill_loc_conf_t  **conf;

    name = file->data;
    file->name = *name;

    /* a master does it before its workers, and gives them the file */

    ends = ngx_terminate || ngx_quit || ngx_exiting;

    rc = (ends || ngx_process == NGX_PROCESS_WORKER)
         ? ngx_http_seckill_journal_look(name)
         : ngx_http_seckill_journal_prepare(name, log);

    if (rc != NGX_OK) {
        /* a folder can't be opened: nginx goes on with the file it has */
        ngx_str_set(&file->name, "/");
    }

    if (ends || !ngx_http_seckill_the_journal.started
        || file != ngx_http_seckill_the_journal.file)
    {
        return;
    }

    confs = ngx_http_seckill_the_journal.confs;
    conf = confs->elts;

    for (i = 0; i < confs->nelts; i++) {
        conf[i]->journal_opened = 0;
    }

    /* the new file is there when nginx is back in its loop */
    ngx_http_seckill_journal_arm(1);
}


static void
ngx_http_seckill_journal_arm(ngx_msec_t wait)
{
    ngx_event_t  *ev;

    /* the core's debug lines name a descriptor */
    static ngx_connection_t  dummy;

    dummy.fd = (ngx_socket_t) -1;

    ev = &ngx_http_seckill_the_journal.timer;

    ev->handler = ngx_http_seckill_journal_timer;
    ev->data = &dummy;
    ev->log = ngx_cycle->log;
    ev->cancelable = 1;

    ngx_http_seckill_the_journal.wait = wait;

    if (ngx_http_seckill_the_journal.file) {
        ngx_add_timer(ev, wait);
    }
}


/* opens what is not opened, and writes again what could not be written */

static void
ngx_http_seckill_journal_timer(ngx_event_t *ev)
{
    ngx_msec_t                     wait;
    ngx_uint_t                     i, again;
    ngx_array_t                   *confs;
    ngx_http_seckill_loc_conf_t  **conf;

    if (!ngx_http_seckill_journal_on()) {
        return;
    }

    again = 0;

    if (ngx_http_seckill_the_journal.failing
        && ngx_http_seckill_journal_mend() != NGX_OK)
    {
        again = 1;
    }

    confs = ngx_http_seckill_the_journal.confs;
    conf = confs->elts;

    for (i = 0; i < confs->nelts; i++) {
        if (!conf[i]->journal_opened) {
            again |= !ngx_http_seckill_journal_open(conf[i]);
        }
    }

    if (again && !ngx_exiting && !ngx_terminate && !ngx_quit) {
        wait = ngx_http_seckill_the_journal.wait;
        wait = (wait < NGX_HTTP_SECKILL_JOURNAL_FIRST)
               ? NGX_HTTP_SECKILL_JOURNAL_FIRST : wait * 2;

        ngx_http_seckill_journal_arm(ngx_min(wait,
                                             NGX_HTTP_SECKILL_JOURNAL_TRY));
    }
}


/* an "open" line: without a key it has to wait, with a full disk as well */

static ngx_uint_t
ngx_http_seckill_journal_open(ngx_http_seckill_loc_conf_t *conf)
{
    sk_journal_line_t  line;

    if (ngx_http_seckill_the_journal.failing
        || ngx_http_seckill_journal_conf_key(conf, 1) == NULL)
    {
        return 0;
    }

    line.kind = SK_JOURNAL_OPEN;
    line.node = (char *) ngx_cycle->hostname.data;
    line.node_len = ngx_cycle->hostname.len;

    if (ngx_http_seckill_journal_put_line(conf, &line) <= 0) {
        ngx_http_seckill_journal_failed(conf, 0, ngx_errno, NULL);
        return 0;
    }

    conf->journal_opened = 1;

    return 1;
}


/* load: ask Redis for the key, if the node does not know it yet */

static sk_journal_key_t *
ngx_http_seckill_journal_conf_key(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t load)
{
    ngx_http_seckill_ctx_t      ctx;
    ngx_http_seckill_control_t  control;

    if (conf->journal_key) {
        return conf->journal_key;
    }

    ngx_memzero(&control, sizeof(ngx_http_seckill_control_t));

    if (ngx_http_seckill_zone_control(conf, &control)
        != NGX_HTTP_SECKILL_FRESH
        && load)
    {
        ngx_memzero(&ctx, sizeof(ngx_http_seckill_ctx_t));
        ctx.conf = conf;

        ngx_http_seckill_load_again(&ctx, 0);
    }

    if (control.known && control.nkeys) {
        ngx_memcpy(conf->journal_secret, control.keys[0],
                   NGX_HTTP_SECKILL_HMAC_KEY);
        conf->journal_keyed = 1;
    }

    /* Redis may be away by now: the key of the last time will do */

    return conf->journal_keyed
           ? ngx_http_seckill_journal_key(conf, conf->journal_secret) : NULL;
}


sk_journal_key_t *
ngx_http_seckill_journal_key(ngx_http_seckill_loc_conf_t *conf, u_char *key)
{
    static ngx_uint_t  next;

    ngx_uint_t                       i;
    ngx_http_seckill_journal_key_t  *slot;

    if (conf->journal_key || key == NULL) {
        return conf->journal_key;
    }

    for (i = 0; i < NGX_HTTP_SECKILL_JOURNAL_KEYS; i++) {
        slot = &ngx_http_seckill_journal_keys[i];

        if (slot->signs.hmac
            && sk_equal(slot->key, key, NGX_HTTP_SECKILL_HMAC_KEY))
        {
            return &slot->signs;
        }
    }

    slot = &ngx_http_seckill_journal_keys[next++
                                          % NGX_HTTP_SECKILL_JOURNAL_KEYS];
    sk_journal_key_done(&slot->signs);
    ngx_memcpy(slot->key, key, NGX_HTTP_SECKILL_HMAC_KEY);

    if (sk_journal_key_init(&slot->signs, key, NGX_HTTP_SECKILL_HMAC_KEY) != 0)
    {
        return NULL;
    }

    return &slot->signs;
}


void
ngx_http_seckill_journal_write(ngx_http_seckill_loc_conf_t *conf, u_char *text,
    size_t len, ngx_uint_t lines)
{
    size_t   i;
    ssize_t  n;

    if (ngx_http_seckill_the_journal.failing
        && ngx_http_seckill_journal_mend() != NGX_OK)
    {
        ngx_http_seckill_journal_failed(conf, lines, 0, NULL);
        return;
    }

    n = write(ngx_http_seckill_the_journal.file->fd, text, len);

    if (n == (ssize_t) len) {
        ngx_http_seckill_count_journal(conf, lines);
        return;
    }

    if (n == -1) {
        ngx_http_seckill_journal_failed(conf, lines, ngx_errno, NULL);
        return;
    }

    /* those before the tear are whole; the first byte is no line's end */

    for (i = 1; i < (size_t) n; i++) {
        if (text[i] == LF) {
            lines--;
            ngx_http_seckill_count_journal(conf, 1);
        }
    }

    ngx_http_seckill_journal_failed(conf, lines, 0, "cut off");
}


void
ngx_http_seckill_journal_lost(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines, const char *why)
{
    ngx_http_seckill_journal_failed(conf, lines, 0, why);
}


static ssize_t
ngx_http_seckill_journal_put_line(ngx_http_seckill_loc_conf_t *conf,
    sk_journal_line_t *line)
{
    char               text[SK_JOURNAL_LINE + 2];
    size_t             len;
    ssize_t            n;
    sk_journal_key_t  *key;

    key = ngx_http_seckill_journal_conf_key(conf, 0);
    if (key == NULL) {
        return 0;
    }

    line->prefix = (char *) conf->prefix.data;
    line->prefix_len = conf->prefix.len;
    line->time_ms = ngx_http_seckill_journal_now();

    text[0] = LF;
    len = sk_journal_format(text + 1, key, line);

    if (len == 0) {
        return 0;
    }

    text[len + 1] = LF;
    n = write(ngx_http_seckill_the_journal.file->fd, text, len + 2);

    return n == (ssize_t) len + 2 ? n : -1;
}


static uint64_t
ngx_http_seckill_journal_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


/* one alert when it begins, whatever follows */

static void
ngx_http_seckill_journal_failed(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines, ngx_err_t err, const char *why)
{
    ngx_http_seckill_journal_t  *journal;

    journal = &ngx_http_seckill_the_journal;

    ngx_http_seckill_count_journal_failed(conf, lines);
    journal->lost += lines;

    if (journal->failing) {
        ngx_http_seckill_journal_tell(conf);
        return;
    }

    journal->failing = 1;
    journal->from_ms = ngx_http_seckill_journal_now();
    journal->counted = ngx_current_msec;

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, err, "seckill_journal \"%V\" "
                  "can't be written%s%s, the sale goes on without it",
                  (ngx_str_t *) journal->file->data,
                  why ? ": " : "", why ? why : "");

    if (!journal->timer.timer_set) {
        ngx_http_seckill_journal_arm(NGX_HTTP_SECKILL_JOURNAL_TRY);
    }
}


/* the seconds of the gap so far */

static void
ngx_http_seckill_journal_tell(ngx_http_seckill_loc_conf_t *conf)
{
    ngx_http_seckill_journal_t  *journal;

    journal = &ngx_http_seckill_the_journal;

    ngx_http_seckill_count_journal_gap(conf,
                                       ngx_current_msec - journal->counted);
    journal->counted = ngx_current_msec;
}


/* a "gap" line for each shop: when one can be written, others can be as well */

static ngx_int_t
ngx_http_seckill_journal_mend(void)
{
    ssize_t                        n;
    ngx_uint_t                     i, told;
    sk_journal_line_t              line;
    ngx_http_seckill_journal_t    *journal;
    ngx_http_seckill_loc_conf_t  **conf;

    journal = &ngx_http_seckill_the_journal;
    conf = journal->confs->elts;

    line.kind = SK_JOURNAL_GAP;
    line.lost = journal->lost;
    line.from_ms = journal->from_ms;
    line.to_ms = ngx_http_seckill_journal_now();

    ngx_http_seckill_journal_tell(conf[0]);

    told = 0;

    for (i = 0; i < journal->confs->nelts; i++) {
        n = ngx_http_seckill_journal_put_line(conf[i], &line);

        if (n < 0) {
            return NGX_ERROR;
        }

        told += n > 0;
    }

    if (told == 0) {
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0, "seckill_journal \"%V\" is "
                  "written again, %ui lines are missing",
                  (ngx_str_t *) journal->file->data, journal->lost);

    journal->failing = 0;
    journal->lost = 0;

    return NGX_OK;
}
