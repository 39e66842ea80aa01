#include "detector/model/reply.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE_BYTES_MAX = 512 }; /* none of the headers that matter is longer */

void reply_init(struct reply *reply)
{
    *reply = (struct reply){.range_start = -1, .range_total = -1};
}

void reply_etag(char ret[REPLY_ETAG_BYTES], const char *value, size_t bytes)
{
    bool is_plain = bytes > 0 && bytes < REPLY_ETAG_BYTES;

    for (size_t i = 0; i < bytes && is_plain; i++) {
        is_plain = value[i] > 0x20 && value[i] < 0x7f;
    }
    if (is_plain) {
        memcpy(ret, value, bytes);
    }
    ret[is_plain ? bytes : 0] = '\0';
}

/* A whole number at *text, which moves behind it; -1: there is none. */
static int64_t take_number(const char **text)
{
    char *end;
    long long number;

    if (**text < '0' || **text > '9') {
        return -1;
    }
    errno = 0;
    number = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0 ? number : -1;
}

/* "bytes 100-199/200", or with a star for what is not known. */
static void take_range(struct reply *reply, const char *value)
{
    int64_t start, last = -1, total = -1;

    if (strncasecmp(value, "bytes ", 6) != 0) {
        return;
    }
    value += 6;
    start = take_number(&value);
    if (*value == '-') {
        value++;
        last = take_number(&value);
    }
    if (*value == '/') {
        value++;
        total = take_number(&value);
    }
    if (start >= 0 && last >= start) {
        reply->range_start = start;
        reply->range_total = total > last ? total : -1;
    }
}

void reply_line(struct reply *reply, const char *line, size_t bytes)
{
    char text[LINE_BYTES_MAX];
    size_t value;

    if (bytes >= sizeof(text)) {
        return;
    }
    while (bytes > 0 && strchr(" \t\r\n", line[bytes - 1]) != NULL) {
        bytes--;
    }
    memcpy(text, line, bytes);
    text[bytes] = '\0';
    if (strncasecmp(text, "HTTP/", 5) == 0) {
        reply_init(reply);
        return;
    }
    value = strcspn(text, ":");
    value += text[value] == ':';
    value += strspn(text + value, " \t");
    if (strncasecmp(text, "etag:", 5) == 0) {
        reply_etag(reply->etag, text + value, strlen(text + value));
    } else if (strncasecmp(text, "content-range:", 14) == 0) {
        take_range(reply, text + value);
    }
}
