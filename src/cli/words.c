#include "cli/words.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Writing --------------------------------------------------------------------------------- */

static uint32_t count(char *const *list, size_t *bytes)
{
    uint32_t words = 0;

    while (list[words]) {
        *bytes += strlen(list[words++]) + 1;
    }
    return words;
}

static char *append(char *at, char *const *list)
{
    for (; *list; list++) {
        at = stpcpy(at, *list) + 1;
    }
    return at;
}

static bool write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        text += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

int words_write(struct words *ret, char *const *arguments, char *const *variables)
{
    size_t bytes = 0;
    struct words words = {.arguments = count(arguments, &bytes),
                          .variables = count(variables, &bytes)};
    char *text = malloc(bytes + 1);
    int errnum = 0;

    if (!text) {
        return ENOMEM;
    }
    (void)append(append(text, arguments), variables);
    words.fd = memfd_create("baton-command", MFD_CLOEXEC);
    if (words.fd < 0) {
        errnum = errno;
    } else if (!write_all(words.fd, text, bytes)) {
        errnum = errno;
        (void)close(words.fd);
    } else {
        *ret = words;
    }
    free(text);
    return errnum;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Lists the next `count` words, and moves *at behind them. NULL: see errno. */
static char **list(char **at, const char *end, uint32_t words)
{
    char **ret = calloc((size_t)words + 1, sizeof(*ret));

    for (uint32_t i = 0; ret && i < words; i++) {
        size_t bytes = strnlen(*at, (size_t)(end - *at));
        if (*at + bytes == end) {
            free(ret);
            errno = EBADMSG;
            return NULL;
        }
        ret[i] = *at;
        *at += bytes + 1;
    }
    return ret;
}

int words_read(char ***ret_arguments, char ***ret_variables, const struct words *words)
{
    struct stat about;
    char *text, *at, **arguments, **variables;

    if (fstat(words->fd, &about) != 0) {
        return errno;
    }
    if (about.st_size == 0) {
        return EBADMSG;
    }
    /* Private: a variable may be changed in place. */
    text = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, words->fd, 0);
    if (text == MAP_FAILED) {
        return errno;
    }
    at = text;
    arguments = list(&at, text + about.st_size, words->arguments);
    variables = arguments ? list(&at, text + about.st_size, words->variables) : NULL;
    if (!variables) {
        int errnum = errno;
        free(arguments);
        (void)munmap(text, (size_t)about.st_size);
        return errnum;
    }
    *ret_arguments = arguments;
    *ret_variables = variables;
    return 0;
}
