#include "base/bearer.h"

#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads up to `bytes`, also from a pipe, which gives them in pieces. -1: see errno. */
static ssize_t read_all(int fd, char *ret, size_t bytes)
{
    size_t used = 0;

    while (used < bytes) {
        ssize_t more = read(fd, ret + used, bytes - used);
        if (more < 0 && errno == EINTR) {
            continue;
        }
        if (more <= 0) {
            return more < 0 ? -1 : (ssize_t)used;
        }
        used += (size_t)more;
    }
    return (ssize_t)used;
}

/* The length of the line, if it is the whole text; 0: there is more text, or no valid token. */
static size_t token_bytes(const char *text, size_t bytes)
{
    size_t length = bytes;

    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r')) {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return 0;
        }
    }
    return length;
}

static int take_line(char *text, size_t bytes, size_t room, const char *path,
                     struct baton_error *reterr)
{
    size_t length = token_bytes(text, bytes);

    if (bytes == room) {
        return error_set(reterr, BATON_EINVAL, "%s: the token is longer than %zu characters", path,
                         room - 2);
    }
    if (bytes > 0 && length == 0) {
        return error_set(reterr, BATON_EINVAL,
                         "%s: must hold one line of visible ASCII characters, without blanks",
                         path);
    }
    if (length < BEARER_MIN) {
        return error_set(reterr, BATON_EINVAL, "%s: the token is shorter than %d characters", path,
                         BEARER_MIN);
    }
    text[length] = '\0';
    return BATON_OK;
}

int bearer_read(char *ret, size_t ret_bytes, const char *path, struct baton_error *reterr)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO may have no writer */
    ssize_t bytes = -1;
    int r;

    if (fd >= 0 && !secret_has_own_path(path)) {
        close(fd);
        return error_set(reterr, BATON_EAUTH,
                         "%s: a symbolic link of another user; give the file's own path", path);
    }
    if (fd >= 0 && fstat(fd, &about) == 0 && !secret_is_private(&about)) {
        close(fd);
        return error_set(reterr, BATON_EAUTH, "%s: others may read it; chmod 600 it first", path);
    }
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFL, O_RDONLY); /* the writer of a pipe is waited for */
        bytes = read_all(fd, ret, ret_bytes);
    }
    r = bytes >= 0 ? take_line(ret, (size_t)bytes, ret_bytes, path, reterr)
                   : error_set(reterr, BATON_EINVAL, "%s: %s", path, strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    return r;
}
