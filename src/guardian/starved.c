#include "guardian/starved.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_file(char *ret, size_t bytes, pid_t process, pid_t thread, const char *name)
{
    char path[96];
    ssize_t got;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)process, (int)thread, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd >= 0 ? read(fd, ret, bytes - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    ret[got > 0 ? got : 0] = '\0';
    return got > 0;
}

bool starved_look(struct starved *starved, pid_t process, pid_t thread)
{
    uint64_t before_ns = starved->used_ns;
    char text[512];
    const char *name_end;

    if (!read_file(text, sizeof(text), process, thread, "schedstat")) {
        return false;
    }
    starved->used_ns = strtoull(text, NULL, 10);
    if (before_ns == 0 || starved->used_ns != before_ns ||
        !read_file(text, sizeof(text), process, thread, "stat")) {
        return false;
    }
    name_end = strrchr(text, ')'); /* the name may contain parentheses itself */
    return name_end != NULL && strncmp(name_end, ") R", 3) == 0;
}
