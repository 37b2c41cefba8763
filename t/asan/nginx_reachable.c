/*
 * Preloaded into the stock nginx next to the sanitizers, so that LeakSanitizer
 * speaks of our leaks only.
 *
 * A worker that ends drops its cycle, and with it the last pointers to the
 * arrays of connections and events; nginx leaves them to exit(), and so it does
 * with the first pool when a configuration is refused.  No name of a function
 * tells that apart: whatever a worker allocates is allocated below
 * ngx_spawn_process().  So two calls into libc that nginx makes at the right
 * time note where these are, in a place that LeakSanitizer searches for pointers.
 * And modules stay loaded until the end.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <dlfcn.h>
#include <sys/utsname.h>


typedef int (*epoll_wait_pt)(int ep, struct epoll_event *events, int n, int timeout);
typedef int (*uname_pt)(struct utsname *name);


extern volatile ngx_cycle_t  *ngx_cycle __attribute__((weak));

/* not static: the compiler must not drop what nobody reads */
void  *nginx_reachable[4];


int
epoll_wait(int ep, struct epoll_event *events, int n, int timeout)
{
    static epoll_wait_pt  next;

    if (next == NULL) {
        next = (epoll_wait_pt) dlsym(RTLD_NEXT, "epoll_wait");
    }

    /* while it exits, nginx points to a cycle without connections */
    if (&ngx_cycle != NULL && ngx_cycle != NULL && ngx_cycle->connections != NULL) {
        nginx_reachable[0] = ngx_cycle->connections;
        nginx_reachable[1] = ngx_cycle->read_events;
        nginx_reachable[2] = ngx_cycle->write_events;
    }

    return next(ep, events, n, timeout);
}


/* ngx_os_init() calls it when the first pool is there and nothing has been read */
int
uname(struct utsname *name)
{
    static uname_pt  next;

    if (next == NULL) {
        next = (uname_pt) dlsym(RTLD_NEXT, "uname");
    }

    if (&ngx_cycle != NULL && ngx_cycle != NULL) {
        nginx_reachable[3] = ngx_cycle->pool;
    }

    return next(name);
}


/* a module that is gone before the report has no names and no variables */
int
dlclose(void *handle)
{
    (void) handle;

    return 0;
}
