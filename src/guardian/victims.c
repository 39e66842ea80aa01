#include "guardian/victims.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STAT_BYTES = 1024,
    CHUNK_BYTES = 4096,
    ENVIRON_MAX = 1 << 20, /* of one process; more than that is not searched */
    PAUSE_NS = 500000,     /* between two looks at who is left */
};

/* Positions in /proc/PID/stat after the name, the state being 1: proc_pid_stat(5) less two. */
enum { STAT_PARENT = 2, STAT_GROUP = 3, STAT_FLAGS = 7, STAT_ENV_START = 48, STAT_ENV_END = 49 };
enum { FLAG_KERNEL_THREAD = 0x00200000 };

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    char state;
    bool is_guardian; /* by its name */
    bool is_kernels;  /* a thread of the kernel: without an environment */
    /* Where its environment lies: at 0 while it is in execve(2), and elsewhere after that. */
    uint64_t environ_start, environ_end;
};

enum finding { FINDING_NO, FINDING_YES, FINDING_UNKNOWN };

/* What one look at the processes has found. Who was in the middle of execve(2) may be a victim. */
struct look {
    int count; /* living victims */
    bool is_unsure;
};

/* The fields that matter out of those that follow the name. */
static bool read_fields(char *text, struct process *ret)
{
    char *rest = NULL;
    int position = 1;

    for (char *field = strtok_r(text, " ", &rest); field != NULL;
         field = strtok_r(NULL, " ", &rest), position++) {
        uint64_t value = strtoull(field, NULL, 10);
        switch (position) {
        case 1:
            ret->state = field[0];
            break;
        case STAT_PARENT:
            ret->parent = (pid_t)value;
            break;
        case STAT_GROUP:
            ret->group = (pid_t)value;
            break;
        case STAT_FLAGS:
            ret->is_kernels = (value & FLAG_KERNEL_THREAD) != 0;
            break;
        case STAT_ENV_START:
            ret->environ_start = value;
            break;
        case STAT_ENV_END:
            ret->environ_end = value;
            break;
        default:
            break;
        }
    }
    return position > STAT_GROUP;
}

static bool read_stat(pid_t pid, struct process *ret)
{
    char path[64];
    char text[STAT_BYTES];
    char *after_name;
    ssize_t bytes;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bytes = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (bytes <= 0) {
        return false;
    }
    text[bytes] = '\0';
    after_name = strrchr(text, ')'); /* the name may hold anything, brackets too */
    *ret = (struct process){.pid = pid, .is_guardian = strstr(text, " (baton-guardian)") != NULL};
    return after_name != NULL && read_fields(after_name + 1, ret);
}

static bool is_dead(const struct process *process)
{
    return process->state == 'Z' || process->state == 'X';
}

/* Whether all that was to be read of its environment has been: it lies where it did before, at a
 * place that every execve(2) draws anew, and is as long.
 *
 * From the moment in which execve(2) lets the old memory go to the one in which it has laid out the
 * new environment, there is nothing more to read. Who takes that for an environment without the
 * marker lets a process live that acts for the leader. */
static bool is_all_of_it(const struct process *before, size_t bytes)
{
    struct process now;

    return !read_stat(before->pid, &now) || is_dead(&now) || now.is_kernels ||
           (now.environ_end != 0 && now.environ_start == before->environ_start &&
            now.environ_end == before->environ_end &&
            (bytes >= ENVIRON_MAX || bytes == now.environ_end - now.environ_start));
}

/* Whether "NAME=value" is one of the strings between NULs, read in overlapping chunks. */
static enum finding search_environ(const struct process *process, const char *marker)
{
    char path[64];
    char text[VICTIMS_MARKER_MAX + CHUNK_BYTES] = {0};
    size_t length = strlen(marker) + 1; /* with the NUL that ends it */
    size_t kept = 0, total = 0;
    bool is_found = false;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)process->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ESRCH) { /* it has no memory: a thread of the kernel, or about to go */
        return is_all_of_it(process, 0) ? FINDING_NO : FINDING_UNKNOWN;
    }
    if (fd < 0) {
        return FINDING_NO; /* gone, or of a user whom this one may not kill either */
    }
    while (!is_found && total < ENVIRON_MAX) {
        ssize_t got = read(fd, text + kept, CHUNK_BYTES);
        size_t bytes = kept + (got > 0 ? (size_t)got : 0);
        if (got <= 0) {
            break;
        }
        total += (size_t)got;
        is_found = memmem(text, bytes, marker, length) != NULL;
        kept = bytes < length - 1 ? bytes : length - 1;
        memmove(text, text + bytes - kept, kept);
    }
    (void)close(fd);
    if (is_found) {
        return FINDING_YES;
    }
    return is_all_of_it(process, total) ? FINDING_NO : FINDING_UNKNOWN;
}

static enum finding judge(const struct victims *victims, const struct process *process)
{
    if (is_dead(process) || process->is_kernels || process->pid == getpid()) {
        return FINDING_NO;
    }
    if ((victims->group != 0 && process->group == victims->group) ||
        (victims->parent != 0 && process->parent == victims->parent && !process->is_guardian)) {
        return FINDING_YES;
    }
    return victims->marker[0] != '\0' ? search_environ(process, victims->marker) : FINDING_NO;
}

static bool signal_processes(const struct victims *victims, int signal_number, struct look *ret)
{
    struct dirent *entry;
    DIR *proc = opendir("/proc");

    if (proc == NULL) {
        return false;
    }
    while ((entry = readdir(proc)) != NULL) {
        struct process process;
        enum finding finding = FINDING_NO;
        if (isdigit((unsigned char)entry->d_name[0]) &&
            read_stat((pid_t)strtol(entry->d_name, NULL, 10), &process)) {
            finding = judge(victims, &process);
        }
        if (finding == FINDING_YES) {
            ret->count++;
            (void)kill(process.pid, signal_number); /* gone meanwhile: seen at the next look */
        } else if (finding == FINDING_UNKNOWN) {
            ret->is_unsure = true;
        }
    }
    (void)closedir(proc);
    return true;
}

/* The living processes of the cgroup itself; -1: it cannot be read. */
static int signal_cgroup(const char *folder, int signal_number)
{
    char path[VICTIMS_PATH_MAX + 32];
    int count = 0, pid;
    FILE *procs;

    if (signal_number == SIGKILL) { /* in one go, so that nobody can fork away from it */
        int fd;
        (void)snprintf(path, sizeof(path), "%s/cgroup.kill", folder);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)!write(fd, "1", 1); /* an older kernel has no such file: the loop below kills */
            (void)close(fd);
        }
    }
    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
    procs = fopen(path, "re");
    if (procs == NULL) {
        return access(folder, F_OK) == 0 ? -1 : 0; /* removed: it was empty */
    }
    while (fscanf(procs, "%d", &pid) == 1) {
        struct process process;
        if (read_stat((pid_t)pid, &process) && !is_dead(&process)) {
            count++;
            (void)kill((pid_t)pid, signal_number);
        }
    }
    (void)fclose(procs);
    return count;
}

/* False: somewhere it could not look. */
static bool signal_all(const struct victims *victims, int signal_number, struct look *ret)
{
    struct victims rest = *victims;

    *ret = (struct look){0};
    if (victims->cgroup[0] != '\0') {
        int in_cgroup = signal_cgroup(victims->cgroup, signal_number);
        if (in_cgroup < 0) {
            (void)signal_processes(&rest, signal_number, ret); /* do what can be done */
            return false;
        }
        ret->count = in_cgroup;
        rest.marker[0] = '\0'; /* the cgroup is exact: no need to search environments */
    }
    if (victims->group != 0) {
        (void)kill(-victims->group, signal_number); /* at once; who is left is counted below */
    }
    return (rest.group == 0 && rest.parent == 0 && rest.marker[0] == '\0') ||
           signal_processes(&rest, signal_number, ret);
}

int victims_signal(const struct victims *victims, int signal_number)
{
    struct look look;
    return signal_all(victims, signal_number, &look) ? look.count : -1;
}

bool victims_are_none(const struct victims *victims)
{
    return victims->group == 0 && victims->parent == 0 && victims->cgroup[0] == '\0' &&
           victims->marker[0] == '\0';
}

bool victims_kill(const struct victims *victims, int limit_ms)
{
    instant limit = instant_add(clock_now(), SPAN_MS(limit_ms));
    for (;;) {
        struct look look;
        if (signal_all(victims, SIGKILL, &look) && look.count == 0 && !look.is_unsure) {
            return true;
        }
        if (!instant_before(clock_now(), limit)) {
            return false;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

void victims_remove_cgroup(const struct victims *victims)
{
    instant limit = instant_add(clock_now(), SPAN_MS(100));
    if (victims->cgroup[0] == '\0') {
        return;
    }
    while (rmdir(victims->cgroup) != 0 && errno == EBUSY && instant_before(clock_now(), limit)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}
