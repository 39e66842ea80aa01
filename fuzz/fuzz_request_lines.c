/* What comes over a connection of HTTP, in pieces whose size is the first byte. */
#include "detector/request_lines.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int value(char digit)
{
    return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

static bool is_digit(char byte)
{
    return byte != '\0' && strchr("0123456789abcdefABCDEF", byte) != NULL;
}

/* The path behind "GET ", decoded all at once: not the way in which it was read. */
static void decode(char *path)
{
    char *to = path;

    for (const char *at = path; *at != '\0'; at++) {
        if (*at == '%' && is_digit(at[1]) && is_digit(at[2])) {
            *to++ = (char)(value(at[1]) * 16 + value(at[2]));
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    to[0] = '/'; /* there is room for one byte more */
    to[1] = '\0';
}

/* Of a first request that is one the path walks nowhere. */
static void check_path(const uint8_t *data, size_t bytes)
{
    char *text = calloc(1, bytes + 2);

    if (text == NULL) {
        return;
    }
    memcpy(text, data, bytes);
    text[strcspn(text, " \t\r\n?")] = '\0';
    decode(text);
    if (strstr(text, "/../") != NULL || strstr(text, "/./") != NULL) {
        abort();
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct request_lines whole = {0}, parts = {0};
    size_t piece = bytes > 0 && data[0] > 0 ? data[0] : 1;
    size_t whole_read, parts_read = 0;

    whole_read = request_lines_read(&whole, data, bytes);
    for (size_t at = 0; at < bytes; at += piece) {
        parts_read +=
            request_lines_read(&parts, data + at, bytes - at < piece ? bytes - at : piece);
    }
    if (parts_read != whole_read || parts.begun != whole.begun || parts.bad != whole.bad ||
        parts.fault != whole.fault || (whole.bad != 0) != (whole.fault != NULL) ||
        whole.bad > whole.begun) {
        abort();
    }
    if (bytes > 5 && memcmp(data, "GET /", 5) == 0 && memchr(data, '\n', bytes) != NULL &&
        memchr(data, '\0', bytes) == NULL && request_lines_fault(&whole, 1, true) == NULL) {
        check_path(data + 4, bytes - 4);
    }
    return 0;
}
