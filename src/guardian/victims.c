#include "guardian/victims.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STAT_BYTES = 512,
    CHUNK_BYTES = 4096,
    ENVIRON_MAX = 1 << 20, /* of one process; more than that is not searched */
    PAUSE_NS = 500000,     /* between two looks at who is left */
};

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    char state;
    bool is_guardian; /* by its name */
};

static bool read_stat(pid_t pid, struct process *ret)
{
    char path[64];
    char text[STAT_BYTES];
    const char *after_name;
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
    ret->pid = pid;
    ret->is_guardian = strstr(text, " (baton-guardian)") != NULL;
    return after_name != NULL &&
           sscanf(after_name + 1, " %c %d %d", &ret->state, &ret->parent, &ret->group) == 3;
}

/* Whether "NAME=value" is one of the strings between NULs, read in overlapping chunks. */
static bool environ_holds(pid_t pid, const char *marker)
{
    char path[64];
    char text[VICTIMS_MARKER_MAX + CHUNK_BYTES] = {0};
    size_t length = strlen(marker) + 1; /* with the NUL that ends it */
    size_t kept = 0, total = 0;
    bool is_found = false;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !is_found && total < ENVIRON_MAX) {
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
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_found;
}

static bool is_victim(const struct victims *victims, const struct process *process)
{
    if (process->state == 'Z' || process->state == 'X' || process->pid == getpid()) {
        return false;
    }
    return (victims->group != 0 && process->group == victims->group) ||
           (victims->parent != 0 && process->parent == victims->parent && !process->is_guardian) ||
           (victims->marker[0] != '\0' && environ_holds(process->pid, victims->marker));
}

static int signal_processes(const struct victims *victims, int signal_number)
{
    int count = 0;
    struct dirent *entry;
    DIR *proc = opendir("/proc");

    if (proc == NULL) {
        return -1;
    }
    while ((entry = readdir(proc)) != NULL) {
        struct process process;
        if (isdigit((unsigned char)entry->d_name[0]) &&
            read_stat((pid_t)strtol(entry->d_name, NULL, 10), &process) &&
            is_victim(victims, &process)) {
            count++;
            (void)kill(process.pid, signal_number); /* gone meanwhile: seen at the next look */
        }
    }
    (void)closedir(proc);
    return count;
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
        if (read_stat((pid_t)pid, &process) && process.state != 'Z' && process.state != 'X') {
            count++;
            (void)kill((pid_t)pid, signal_number);
        }
    }
    (void)fclose(procs);
    return count;
}

int victims_signal(const struct victims *victims, int signal_number)
{
    int in_cgroup = 0, others = 0;

    if (victims->cgroup[0] != '\0') {
        in_cgroup = signal_cgroup(victims->cgroup, signal_number);
    }
    if (victims->group != 0) {
        (void)kill(-victims->group, signal_number); /* at once; who is left is counted below */
    }
    if (victims->group != 0 || victims->parent != 0 || victims->marker[0] != '\0') {
        struct victims rest = *victims;
        if (in_cgroup >= 0 && victims->cgroup[0] != '\0') {
            rest.marker[0] = '\0'; /* the cgroup is exact: no need to search environments */
        }
        others = signal_processes(&rest, signal_number);
    }
    return in_cgroup < 0 || others < 0 ? -1 : in_cgroup + others;
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
        int left = victims_signal(victims, SIGKILL);
        if (left == 0) {
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
