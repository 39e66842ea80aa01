#include "guardian/victims.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    STAT_BYTES = 1024,
    CHUNK_BYTES = 4096,
    ENVIRON_MAX = 1 << 20, /* of one process; bytes beyond that are not searched */
    CGROUP_DEPTH_MAX = 32,
    PAUSE_NS = 500000, /* between two searches */
};

/* ---- One process ----------------------------------------------------------------------------- */

/* Positions in /proc/PID/stat behind the name, as in proc_pid_stat(5) less 2. */
enum {
    STAT_STATE = 1,
    STAT_GROUP = 3,
    STAT_FLAGS = 7,
    STAT_MEMORY = 21,
    STAT_CODE = 24,
    STAT_ENV_START = 48,
    STAT_ENV_END = 49,
};

/* Of the kernel's sched.h. */
enum { FLAG_EXITING = 0x4, FLAG_KERNEL_THREAD = 0x200000 };

struct process {
    bool is_alive;
    bool is_unread;  /* it may be alive, but there was no memory or descriptor to read about it */
    pid_t group;     /* 0: one whose leader is outside the PID namespace */
    uint64_t memory; /* in bytes; 0: a thread of the kernel, or a process that exits */
    uint64_t flags;
    uint64_t code; /* where it begins; Linux sets it last in execve(2), till then it is 0 */
    uint64_t environ_start, environ_end;
};

static void read_field(struct process *process, int position, const char *field)
{
    uint64_t value = strtoull(field, NULL, 10);

    switch (position) {
    case STAT_GROUP:
        process->group = (pid_t)value;
        break;
    case STAT_FLAGS:
        process->flags = value;
        break;
    case STAT_MEMORY:
        process->memory = value;
        break;
    case STAT_CODE:
        process->code = value;
        break;
    case STAT_ENV_START:
        process->environ_start = value;
        break;
    case STAT_ENV_END:
        process->environ_end = value;
        break;
    default:
        break;
    }
}

/* What /proc says of a process that has ended. */
static bool is_gone(int errnum)
{
    return errnum == ENOENT || errnum == ESRCH;
}

static struct process read_process(pid_t pid)
{
    struct process process = {0};
    char path[64], text[STAT_BYTES], *rest = NULL, *after_name;
    int position = STAT_STATE;
    ssize_t bytes;
    int fd;

    errno = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    bytes = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (bytes <= 0) {
        process.is_unread = !is_gone(errno);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
    after_name = strrchr(text, ')'); /* the name may contain parentheses itself */
    for (char *field = after_name != NULL ? strtok_r(after_name + 1, " ", &rest) : NULL;
         field != NULL; field = strtok_r(NULL, " ", &rest), position++) {
        if (position == STAT_STATE && (field[0] == 'Z' || field[0] == 'X')) {
            return process;
        }
        process.is_alive = true;
        read_field(&process, position, field);
    }
    return process;
}

enum finding { FINDING_NO, FINDING_YES, FINDING_UNKNOWN };

/* Whether the marker is there, or one that begins with it and "-". */
static bool names(const char *text, size_t bytes, const char *marker)
{
    char longer[VICTIMS_MARKER_MAX + 1];
    size_t length = strlen(marker) + 1;

    (void)snprintf(longer, sizeof(longer), "%s-", marker);
    return memmem(text, bytes, marker, length) != NULL ||
           memmem(text, bytes, longer, length) != NULL;
}

/* Whether the marker is one of the NUL-terminated strings; reads overlapping chunks. During an
 * execve(2) the old environment is gone and the new one not yet there, so a read finds nothing or
 * only a part: the process is unknown until it has been searched to the end that stat named. */
static enum finding search_environ(const struct process *process, pid_t pid, const char *marker)
{
    char path[64];
    char text[VICTIMS_MARKER_MAX + CHUNK_BYTES] = {0};
    size_t length = strlen(marker) + 1; /* with the byte that ends it */
    size_t kept = 0, total = 0;
    bool is_found = false;
    ssize_t got = 0;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) { /* EACCES, EPERM: of a user whose processes this one may not kill either */
        return errno == EACCES || errno == EPERM || errno == ENOENT ? FINDING_NO : FINDING_UNKNOWN;
    }
    while (!is_found && total < ENVIRON_MAX && (got = read(fd, text + kept, CHUNK_BYTES)) > 0) {
        size_t bytes = kept + (size_t)got;
        total += (size_t)got;
        is_found = names(text, bytes, marker);
        kept = bytes < length - 1 ? bytes : length - 1;
        memmove(text, text + bytes - kept, kept);
    }
    (void)close(fd);
    if (is_found) {
        return FINDING_YES;
    }
    if (total >= ENVIRON_MAX) {
        return FINDING_NO;
    }
    return got < 0 || process->code == 0 || total != process->environ_end - process->environ_start
               ? FINDING_UNKNOWN
               : FINDING_NO;
}

static enum finding judge(const struct victims *victims, pid_t pid)
{
    struct process process = read_process(pid);

    if (!process.is_alive) {
        return process.is_unread ? FINDING_UNKNOWN : FINDING_NO;
    }
    if (victims->group != 0 && process.group == victims->group) {
        return FINDING_YES;
    }
    if (process.memory == 0 && (process.flags & (FLAG_EXITING | FLAG_KERNEL_THREAD)) != 0) {
        return FINDING_NO;
    }
    return victims->marker[0] != '\0' ? search_environ(&process, pid, victims->marker) : FINDING_NO;
}

/* The process number may have been reused since the check: checks again while a pidfd is open. */
static void kill_victim(const struct victims *victims, pid_t pid)
{
    int pidfd = pidfd_open(pid, 0);

    if (pidfd >= 0) {
        if (judge(victims, pid) == FINDING_YES) {
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

/* Kills all victims in /proc; returns how many processes are one or may become one. */
static int kill_processes(const struct victims *victims)
{
    struct dirent *entry;
    DIR *proc = opendir("/proc");
    int count = proc == NULL; /* who cannot look has found nobody, and proved nothing */

    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        enum finding finding = pid > 0 && pid != getpid() ? judge(victims, pid) : FINDING_NO;
        if (finding == FINDING_YES) {
            kill_victim(victims, pid);
        }
        count += finding != FINDING_NO;
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return count;
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

bool victims_hunt(const struct victims *victims, int limit_ms)
{
    instant limit = instant_add(clock_now(), SPAN_MS(limit_ms));

    while (!victims_are_none(victims)) {
        bool can_look = victims_has_proc();
        victims_kill_cgroup(victims->cgroup);
        bool is_empty = victims_cgroup_is_empty(victims->cgroup);
        if (can_look && kill_processes(victims) == 0 && is_empty) {
            return true;
        }
        if (!instant_before(clock_now(), limit) || (!can_look && is_empty)) {
            return false;
        }
        pause_shortly();
    }
    return true;
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
