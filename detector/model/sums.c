#include "detector/model/sums.h"

#include "base/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void sums_add(struct buffer *sums, const char *name, const char digest[DIGEST_BYTES])
{
    buffer_put(sums, digest, DIGEST_BYTES - 1);
    buffer_put(sums, " ", 1);
    buffer_put(sums, name, strlen(name));
    buffer_put(sums, "\n", 1);
}

/* The digest that the file should have; NULL: it is not listed. Names have no line breaks. */
static const char *listed(const char *sums, const char *name)
{
    size_t bytes = strlen(name);

    for (const char *line = sums; strlen(line) > DIGEST_BYTES + bytes;) {
        const char *end = strchr(line, '\n');
        if (end == line + DIGEST_BYTES + bytes && strncmp(line + DIGEST_BYTES, name, bytes) == 0) {
            return line;
        }
        line = end != NULL ? end + 1 : line + strlen(line);
    }
    return NULL;
}

static int check_file(int folder_fd, const char *sums, const char *name)
{
    char digest[DIGEST_BYTES];
    const char *wanted = listed(sums, name);
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 ? digest_file(fd, digest) : BATON_ECORRUPT;

    if (fd >= 0) {
        close(fd);
    }
    if (rc == BATON_ENOMEM) {
        return rc;
    }
    return rc == 0 && wanted != NULL && strncmp(digest, wanted, DIGEST_BYTES - 1) == 0
               ? 0
               : BATON_ECORRUPT;
}

int sums_check(int folder_fd, const struct pipeline *pipeline)
{
    char sums[SUMS_BYTES_MAX + 1];
    int fd = openat(folder_fd, SUMS_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, sums, SUMS_BYTES_MAX) : -1;
    int rc;

    if (fd >= 0) {
        close(fd);
    }
    if (got < 0) {
        return BATON_ECORRUPT;
    }
    sums[got] = '\0';
    rc = check_file(folder_fd, sums, PIPELINE_FILE);
    for (size_t i = 0; i < pipeline->model_count && rc == 0; i++) {
        rc = check_file(folder_fd, sums, pipeline->models[i].file);
    }
    return rc;
}
