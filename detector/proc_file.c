#include "detector/proc_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool proc_read(const char *path, char text[static PROC_FILE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 1;

    if (fd < 0) {
        return false;
    }
    while (used < PROC_FILE_MAX - 1 &&
           (got = read(fd, text + used, PROC_FILE_MAX - 1 - used)) > 0) {
        used += (size_t)got;
    }
    (void)close(fd);
    text[used] = '\0';
    return got >= 0;
}

bool proc_number(const char *text, uint64_t *ret)
{
    char *end;
    if (*text < '0' || *text > '9') {
        return false;
    }
    *ret = strtoull(text, &end, 10);
    return end != text;
}

bool proc_number_after(const char *text, const char *key, uint64_t *ret)
{
    size_t bytes = strlen(key);

    while (text != NULL) {
        if (strncmp(text, key, bytes) == 0 && (text[bytes] == ' ' || text[bytes] == '\t')) {
            return proc_number(text + bytes + strspn(text + bytes, " \t"), ret);
        }
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return false;
}
