/*
 * One datagram per call: it happens a few times in the daemon's life.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "skb_log.h"
#include "skd_notify.h"


void
skd_notify(const char *state)
{
    int                 fd;
    size_t              len;
    const char         *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un  address;

    if (path == NULL || *path == '\0') {
        return;
    }

    len = strlen(path);
    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;

    if (len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) {
        skb_log_msg(SKB_WARN, "NOTIFY_SOCKET is not understood");
        return;
    }

    memcpy(address.sun_path, path, len);

    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }

    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd == -1
        || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *) &address,
                  (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len)) == -1)
    {
        skb_log(SKB_WARN, "cannot notify the service manager", "error=\"%s\"",
                strerror(errno));
    }

    if (fd != -1) {
        close(fd);
    }
}


uint64_t
skd_notify_watchdog(void)
{
    const char  *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (text == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long) getpid())) {
        return 0;
    }

    return strtoull(text, NULL, 10);
}
