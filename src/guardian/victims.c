#include "guardian/victims.h"

#include "base/clock.h"
#include "base/thread.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CGROUP_DEPTH_MAX = 32,
    PAUSE_NS = 500000,  /* between two searches */
    PASS_MAX_MS = 2000, /* a search that takes longer than that and its limit is stuck */
    HUNTS_MAX = 64,
    LISTS_MAX = 100,   /* of processes, in one search: others may start all the time */
    NUMBERS = 1 << 22, /* of processes: Linux has no more */
};

/* ---- One process ----------------------------------------------------------------------------- */

/* A search for the victims, in a thread of its own: see victims_hunt(). */
struct hunt {
    struct victims victims;
    uid_t user; /* on whose behalf; 0: whoever is found is killed */
    int limit_ms;
    atomic_bool has_found_none;
    atomic_bool is_given_up; /* nobody waits for its end any more: it ends as soon as it can */
    atomic_int holders;      /* of this memory */
    sem_t has_ended;
};

static enum finding judge(const struct hunt *hunt, pid_t pid)
{
    const struct victims *victims = &hunt->victims;
    struct suspect suspect = suspect_read(pid);

    if (!suspect.is_alive) {
        return suspect.is_unread ? FINDING_UNKNOWN : FINDING_GONE;
    }
    if (victims->group != 0 && suspect.group == victims->group) {
        return FINDING_YES;
    }
    return victims->marker[0] != '\0' ? suspect_has_marker(&suspect, victims->marker) : FINDING_NO;
}

/* The process number may have been reused since the check: checks again while a pidfd is open. */
static void kill_victim(const struct hunt *hunt, pid_t pid)
{
    int pidfd = pidfd_open(pid, 0);

    if (pidfd >= 0) {
        if (judge(hunt, pid) == FINDING_YES && !atomic_load(&hunt->is_given_up) &&
            suspect_is_within_reach(&(struct suspect){.pid = pid}, hunt->user)) {
            (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        }
        (void)close(pidfd);
    }
}

bool victims_has_proc(void)
{
    char text[32];
    ssize_t bytes = readlink("/proc/self", text, sizeof(text) - 1);

    text[bytes > 0 ? bytes : 0] = '\0';
    return strtol(text, NULL, 10) == getpid();
}

/* Looks at those in /proc whose numbers it has not looked at, kills those that are victims, and
 * returns how many are one or may become one. Says whether it came too late to one. */
static int kill_others(const struct hunt *hunt, DIR *proc, uint8_t seen[], bool *ret_was_late)
{
    struct dirent *entry;
    int count = 0;

    *ret_was_late = false;
    while (!atomic_load(&hunt->is_given_up) && (entry = readdir(proc)) != NULL) {
        bool is_process = isdigit((unsigned char)entry->d_name[0]);
        pid_t pid = is_process ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        enum finding finding;
        if (pid <= 0 || pid >= NUMBERS || pid == getpid() || (seen[pid / 8] & 1U << pid % 8) != 0) {
            continue;
        }
        seen[pid / 8] |= (uint8_t)(1U << pid % 8);
        finding = judge(hunt, pid);
        if (finding == FINDING_YES) {
            kill_victim(hunt, pid);
        }
        *ret_was_late |= finding == FINDING_GONE;
        count += finding == FINDING_YES || finding == FINDING_UNKNOWN;
    }
    return count;
}

/* Kills all victims in /proc; returns how many processes are one or may become one. One that ends
 * after it was listed, and before its turn, may have left a child that is not on that list. */
static int kill_processes(const struct hunt *hunt)
{
    uint8_t *seen = calloc(NUMBERS / 8, 1);
    DIR *proc = seen != NULL ? opendir("/proc") : NULL;
    int count = proc == NULL; /* who cannot look has found nobody, and proved nothing */
    bool was_late = proc != NULL;

    for (int list = 0; was_late && list < LISTS_MAX; list++) {
        rewinddir(proc);
        count += kill_others(hunt, proc, seen, &was_late);
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    free(seen);
    return count + was_late;
}

/* ---- A cgroup -------------------------------------------------------------------------------- */

void victims_kill_cgroup(const char *folder)
{
    char path[VICTIMS_PATH_MAX + 32];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/cgroup.kill", folder);
    fd = folder[0] != '\0' ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!write(fd, "1", 1);
        (void)close(fd);
    }
}

bool victims_cgroup_is_empty(const char *folder)
{
    char path[VICTIMS_PATH_MAX + 32], text[256];
    ssize_t bytes;
    int fd;

    if (folder[0] == '\0') {
        return true;
    }
    (void)snprintf(path, sizeof(path), "%s/cgroup.events", folder);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return access(folder, F_OK) != 0 && errno == ENOENT;
    }
    bytes = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    return strstr(text, "populated 0") != NULL;
}

/* Removes the deepest folders first. */
static void remove_folders(int parent, const char *name, int depth)
{
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = folder >= 0 ? fdopendir(folder) : NULL;
    struct dirent *entry;

    while (entries != NULL && depth < CGROUP_DEPTH_MAX && (entry = readdir(entries)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            remove_folders(folder, entry->d_name, depth + 1);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    } else if (folder >= 0) {
        (void)close(folder);
    }
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static void pause_shortly(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

void victims_remove_cgroup(const char *folder)
{
    instant limit = instant_add(clock_now(), SPAN_MS(100));

    while (folder[0] != '\0' && access(folder, F_OK) == 0 && instant_before(clock_now(), limit)) {
        remove_folders(AT_FDCWD, folder, 0);
        if (access(folder, F_OK) == 0) {
            pause_shortly();
        }
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

bool victims_are_none(const struct victims *victims)
{
    return victims->supervisor == 0 && victims->group == 0 && victims->cgroup[0] == '\0' &&
           victims->marker[0] == '\0';
}

static bool hunt_down(const struct hunt *hunt)
{
    const struct victims *victims = &hunt->victims;
    instant limit = instant_add(clock_now(), SPAN_MS(hunt->limit_ms));

    while (!atomic_load(&hunt->is_given_up)) {
        bool can_look = victims_has_proc();
        victims_kill_cgroup(victims->cgroup);
        bool is_empty = victims_cgroup_is_empty(victims->cgroup);
        if (can_look && kill_processes(hunt) == 0 && is_empty) {
            return true;
        }
        if (!instant_before(clock_now(), limit) || (!can_look && is_empty)) {
            return false;
        }
        pause_shortly();
    }
    return false;
}

/* Those that have not ended, among them those that nobody waits for any more. */
static atomic_int hunts;

static void let_go(struct hunt *hunt)
{
    if (atomic_fetch_sub(&hunt->holders, 1) == 1) {
        (void)sem_destroy(&hunt->has_ended);
        free(hunt);
        (void)atomic_fetch_sub(&hunts, 1);
    }
}

static void *hunt_main(void *userdata)
{
    struct hunt *hunt = userdata;

    hunt->has_found_none = hunt_down(hunt);
    (void)sem_post(&hunt->has_ended);
    let_go(hunt);
    return NULL;
}

/* False: it is still at work when it should have ended. */
static bool await_end(struct hunt *hunt)
{
    int64_t limit_ms = (int64_t)hunt->limit_ms + PASS_MAX_MS;
    struct timespec until; /* sem_clockwait() has no clock that counts the time asleep */
    int result;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_ms / 1000 + 1;
    do {
        result = sem_clockwait(&hunt->has_ended, CLOCK_MONOTONIC, &until);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

/* The read of a stranger's memory may never end, and no signal but SIGKILL ends it. So a thread
 * reads, and is left behind if it does not come back. */
bool victims_hunt_for(const struct victims *victims, uid_t user, int limit_ms)
{
    struct hunt *hunt = atomic_fetch_add(&hunts, 1) < HUNTS_MAX ? calloc(1, sizeof(*hunt)) : NULL;
    bool has_found_none;

    if (hunt == NULL) {
        (void)atomic_fetch_sub(&hunts, 1);
        return false;
    }
    hunt->victims = *victims;
    hunt->user = user;
    hunt->limit_ms = limit_ms;
    (void)sem_init(&hunt->has_ended, 0, 0);
    hunt->holders = 2;
    if (thread_start_detached(hunt_main, hunt) == 0) {
        has_found_none = await_end(hunt) && hunt->has_found_none;
    } else {
        hunt->holders = 1;
        has_found_none = hunt_down(hunt);
    }
    atomic_store(&hunt->is_given_up, true);
    let_go(hunt);
    return has_found_none;
}

bool victims_hunt(const struct victims *victims, int limit_ms)
{
    return victims_are_none(victims) || victims_hunt_for(victims, 0, limit_ms);
}

/* False: the supervisor died, or has not finished in time. If it ended without reading our
 * question, recv() first reports ECONNRESET, once, and then its reply. */
static bool await_supervisor(int supervisor, int limit_ms)
{
    struct pollfd readable = {.fd = supervisor, .events = POLLIN};
    char byte = 0;
    ssize_t bytes;

    if (supervisor < 0 || poll(&readable, 1, limit_ms) != 1) {
        return false;
    }
    bytes = recv(supervisor, &byte, 1, MSG_DONTWAIT);
    if (bytes < 0 && errno == ECONNRESET) {
        bytes = recv(supervisor, &byte, 1, MSG_DONTWAIT);
    }
    return bytes == 1 && byte == VICTIMS_NONE_LEFT;
}

void victims_wake_supervisor(const struct victims *victims)
{
    if (victims->process > 0) {
        (void)pidfd_send_signal(victims->process, SIGCONT, NULL, 0);
    }
}

bool victims_end(const struct victims *victims, int limit_ms)
{
    struct victims strays = *victims;
    char byte = VICTIMS_END;
    bool is_certain = victims_are_none(victims);

    if (victims->supervisor != 0) {
        /* Fails if the supervisor has replied already and ended. */
        (void)!send(victims->supervisor, &byte, 1, MSG_NOSIGNAL);
        victims_wake_supervisor(victims);
        is_certain = await_supervisor(victims->supervisor, limit_ms);
    }
    if (is_certain) {
        strays.group = 0; /* the group's number may be reused by now */
        strays.cgroup[0] = '\0';
    }
    (void)victims_hunt(&strays, limit_ms);
    return is_certain;
}
