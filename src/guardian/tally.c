#include "guardian/tally.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FORGOTTEN_S = 3600, COUNT_MAX = 1000000 };

static unsigned read_count(int fd)
{
    char text[16] = "";
    struct stat about;
    ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
    unsigned long count = bytes > 0 ? strtoul(text, NULL, 10) : 0;

    /* It lies ahead if the clock was wrong and has been set back. */
    if (fstat(fd, &about) != 0 || labs(time(NULL) - about.st_mtime) > FORGOTTEN_S ||
        count > COUNT_MAX) {
        return 0;
    }
    return (unsigned)count;
}

unsigned tally_read(const char *path)
{
    int fd = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    unsigned count = fd >= 0 ? read_count(fd) : 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return count;
}

void tally_count(const char *path)
{
    int fd = path[0] != '\0' ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    char text[16];

    if (fd >= 0) {
        int bytes = snprintf(text, sizeof(text), "%u\n", read_count(fd) + 1);
        (void)!pwrite(fd, text, (size_t)bytes, 0);
        (void)close(fd);
    }
}
