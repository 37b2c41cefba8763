/*
 * A bounded queue and the thread behind it.  The command gets no shell, no
 * terminal, no environment but PATH, a session of its own, and ten seconds.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "skb_config.h"
#include "skb_log.h"
#include "skd_alarm.h"
#include "skd_clock.h"
#include "skd_stats.h"
#include "skd_stream.h"

#define SKD_ALARM_QUEUE     256
#define SKD_ALARM_LIMIT_MS  10000       /* then it is killed */
#define SKD_ALARM_LOOK_MS   20

typedef struct {
    char  activity[24];
    char  user[24];
    char  entry[SKD_STREAM_ID_MAX];
} skd_alarm_t;

static struct {
    pthread_t        thread;
    int              running;
    skd_stop_t      *stop;
    char             command[SKB_PATH_MAX];

    pthread_mutex_t  mutex;             /* of what follows */
    skd_alarm_t      queue[SKD_ALARM_QUEUE];
    size_t           first;
    size_t           count;
} skd_alarm = { .mutex = PTHREAD_MUTEX_INITIALIZER };


void
skd_alarm_raise(uint64_t activity, uint64_t user, const char *entry)
{
    int           full;
    skd_alarm_t  *alarm;

    if (!skd_alarm.running) {
        return;
    }

    pthread_mutex_lock(&skd_alarm.mutex);

    full = skd_alarm.count == SKD_ALARM_QUEUE;

    if (!full) {
        alarm = &skd_alarm.queue[(skd_alarm.first + skd_alarm.count++) % SKD_ALARM_QUEUE];
        snprintf(alarm->activity, sizeof(alarm->activity), "%" PRIu64, activity);
        snprintf(alarm->user, sizeof(alarm->user), "%" PRIu64, user);
        snprintf(alarm->entry, sizeof(alarm->entry), "%s", entry);
    }

    pthread_mutex_unlock(&skd_alarm.mutex);

    if (full) {
        skd_count(SKD_COUNT_ALARMS_DROPPED, 1);
    }
}


static int
skd_alarm_take(skd_alarm_t *alarm)
{
    int  taken = 0;

    pthread_mutex_lock(&skd_alarm.mutex);

    if (skd_alarm.count > 0) {
        *alarm = skd_alarm.queue[skd_alarm.first];
        skd_alarm.first = (skd_alarm.first + 1) % SKD_ALARM_QUEUE;
        skd_alarm.count--;
        taken = 1;
    }

    pthread_mutex_unlock(&skd_alarm.mutex);

    return taken;
}


/* Returns 0 and the process, or an error number. */
static int
skd_alarm_spawn(skd_alarm_t *alarm, pid_t *pid)
{
    int                         rc;
    char                       *argv[] = { skd_alarm.command, alarm->activity, alarm->user,
                                           alarm->entry, NULL };
    char                       *envp[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:"
                                           "/usr/bin:/sbin:/bin", NULL };
    sigset_t                    none, all;
    posix_spawnattr_t           attr;
    posix_spawn_file_actions_t  files;

    sigemptyset(&none);
    sigfillset(&all);

    rc = posix_spawnattr_init(&attr);

    if (rc != 0) {
        return rc;
    }

    rc = posix_spawn_file_actions_init(&files);

    if (rc == 0) {
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
                                        | POSIX_SPAWN_SETSID);
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setsigdefault(&attr, &all);

        /* all other descriptors are closed on exec */
        rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        rc = rc ? rc : posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        rc = rc ? rc : posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        rc = rc ? rc : posix_spawn(pid, skd_alarm.command, &files, &attr, argv, envp);

        posix_spawn_file_actions_destroy(&files);
    }

    posix_spawnattr_destroy(&attr);

    return rc;
}


/* Waits for its end; what hangs is killed, what outlives us stays. */
static void
skd_alarm_wait(const skd_alarm_t *alarm, pid_t pid)
{
    int      status = 0, killed = 0, stopping = 0;
    pid_t    rc;
    int64_t  end = skd_now_ms() + SKD_ALARM_LIMIT_MS;

    for ( ;; ) {
        rc = waitpid(pid, &status, WNOHANG);

        if (rc == pid || (rc == -1 && errno != EINTR)) {
            break;
        }

        if (stopping) {
            return;
        }

        if (!killed && skd_now_ms() >= end) {
            killed = 1;
            kill(-pid, SIGKILL);
        }

        stopping = skd_stop_wait(skd_alarm.stop, SKD_ALARM_LOOK_MS);
    }

    if (rc != pid || status != 0) {
        skb_log(SKB_WARN, "on_dead command failed",
                "activity=%s entry=%s exit=%d signal=%d", alarm->activity, alarm->entry,
                WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}


static void *
skd_alarm_run(void *data)
{
    int          rc;
    pid_t        pid;
    skd_alarm_t  alarm;

    (void) data;

    for ( ;; ) {
        if (!skd_alarm_take(&alarm)) {
            if (skd_stop_wait(skd_alarm.stop, 100)) {
                break;
            }

            continue;
        }

        /* told to stop: those that are due are started, none is waited for */
        rc = skd_alarm_spawn(&alarm, &pid);

        if (rc != 0) {
            skb_log(SKB_WARN, "on_dead command can't run", "error=\"%s\"", strerror(rc));
            continue;
        }

        skd_count(SKD_COUNT_ALARMS, 1);
        skd_alarm_wait(&alarm, pid);
    }

    return NULL;
}


int
skd_alarm_start(const char *command, skd_stop_t *stop)
{
    int  rc = 0;

    snprintf(skd_alarm.command, sizeof(skd_alarm.command), "%s", command);
    skd_alarm.stop = stop;

    /* those that an earlier thread did not wait for */
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        continue;
    }

    if (command[0] != '\0') {
        rc = pthread_create(&skd_alarm.thread, NULL, skd_alarm_run, NULL);
        skd_alarm.running = rc == 0;
    }

    return rc;
}


void
skd_alarm_join(void)
{
    pid_t        pid;
    skd_alarm_t  alarm;

    if (!skd_alarm.running) {
        return;
    }

    pthread_join(skd_alarm.thread, NULL);
    skd_alarm.running = 0;

    /* what the last batches raised */
    while (skd_alarm_take(&alarm)) {
        if (skd_alarm_spawn(&alarm, &pid) == 0) {
            skd_count(SKD_COUNT_ALARMS, 1);
        }
    }
}
