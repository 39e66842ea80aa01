#include "agent/container.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0: it has ended, or this user may not look. */
static ino_t namespace_of(pid_t pid)
{
    char path[64];
    struct stat about;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    return stat(path, &about) == 0 ? about.st_ino : 0;
}

/* Its number in its own PID namespace, the innermost; 0: unknown. */
static long inner_number(pid_t pid)
{
    char path[64], line[256];
    const char *last = NULL;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && !last && fgets(line, sizeof(line), file)) {
        last = strncmp(line, "NSpid:", 6) == 0 ? strrchr(line, '\t') : NULL;
    }
    if (file) {
        (void)fclose(file);
    }
    return last ? strtol(last, NULL, 10) : 0;
}

static bool is_init_of(pid_t pid, ino_t namespace)
{
    return inner_number(pid) == 1 && namespace_of(pid) == namespace;
}

/* Looked at again when its pidfd is held: the number may have been used anew. */
static int open_init(pid_t pid, ino_t namespace)
{
    int fd = is_init_of(pid, namespace) ? pidfd_open(pid, 0) : -1;

    if (fd >= 0 && !is_init_of(pid, namespace)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

int container_open_init(pid_t pid)
{
    ino_t namespace = pid > 0 ? namespace_of(pid) : 0;
    const struct dirent *entry;
    DIR *folder;
    int fd = -1;

    if (namespace == 0 || namespace == namespace_of(getpid()) || !(folder = opendir("/proc"))) {
        return -1;
    }
    while (fd < 0 && (entry = readdir(folder))) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        fd = number > 0 && !*end ? open_init((pid_t)number, namespace) : -1;
    }
    (void)closedir(folder);
    return fd;
}
