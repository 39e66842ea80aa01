/* The path and the query of a target; see request.h. */
#include "web/frames.h"
#include "web/request.h"

#include <string.h>

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte at `*at`, decoded, and moves behind it; -1: a malformed code. */
static int decode(const char **at)
{
    int high, low;

    if (**at != '%') {
        return (unsigned char)*(*at)++;
    }
    high = digit((*at)[1]);
    low = high < 0 ? -1 : digit((*at)[2]);
    *at += low < 0 ? 0 : 3;
    return low < 0 ? -1 : high * 16 + low;
}

/* Whether the segment that ends here is ".", ".." or empty. */
static bool is_walk(const char *path, size_t bytes)
{
    size_t begin = bytes;

    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    return bytes == begin || (bytes - begin <= 2 && strspn(path + begin, ".") == bytes - begin);
}

static bool is_utf8(const char *path, size_t bytes)
{
    struct web_utf8 utf8 = {0};

    return web_utf8_take(&utf8, (const uint8_t *)path, bytes) && utf8.wanted == 0;
}

const char *web_path(const char *target, char ret[static WEB_PATH_MAX])
{
    const char *at = target + strspn(target, "/");
    size_t bytes = 1;
    ret[0] = '/';
    ret[1] = '\0';
    while (*at != '\0' && *at != '?') {
        int byte = decode(&at);
        if (byte < ' ' || byte == 0x7f) {
            return byte >= 0 ? "the path has a control character in it"
                             : "a percent sign in the path needs two hexadecimal digits behind it";
        }
        if (byte == '/' && is_walk(ret, bytes)) {
            return "the path has a segment that is empty, \\\".\\\" or \\\"..\\\"";
        }
        if (bytes + 1 == WEB_PATH_MAX) {
            return "the path is too long";
        }
        ret[bytes++] = (char)byte;
        ret[bytes] = '\0';
    }
    if (bytes > 1 && ret[bytes - 1] != '/' && is_walk(ret, bytes)) {
        return "the path ends in \\\".\\\" or \\\"..\\\"";
    }
    return is_utf8(ret, bytes) ? NULL : "the path is not UTF-8";
}

const char *web_query(const char *target)
{
    const char *mark = strchr(target, '?');

    return mark != NULL ? mark + 1 : "";
}

const char *web_query_fault(const char *target)
{
    const char *at = web_query(target);

    while (*at != '\0') {
        int byte = decode(&at);
        if (byte < ' ' || byte == 0x7f) {
            return "the query has a malformed code or a control character in it";
        }
    }
    return NULL;
}
