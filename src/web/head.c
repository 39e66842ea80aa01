#include "web/head.h"

#include <string.h>

#define BLANKS " \t"

void web_head_init(struct web_head *head, size_t max)
{
    *head = (struct web_head){.max = max};
    buffer_init(&head->text, max + 1);
}

void web_head_fini(struct web_head *head)
{
    buffer_fini(&head->text);
}

void web_head_next(struct web_head *head)
{
    struct buffer text = head->text;

    buffer_clear(&text);
    *head = (struct web_head){.max = head->max, .text = text};
}

/* ---- What http-parser reports ---------------------------------------------------------------- */

/* Drops the blanks behind a value, which http-parser reports as part of it. */
static void end_value(struct web_head *head)
{
    struct buffer *text = &head->text;

    while (text->bytes > 0 && text->data[text->bytes - 1] != '\0' &&
           strchr(BLANKS, text->data[text->bytes - 1]) != NULL) {
        text->bytes--;
    }
    buffer_put_u8(text, 0);
}

const char *web_head_name(struct web_head *head, const char *at, size_t bytes)
{
    if (head->is_read) {
        return NULL; /* trailers are not kept */
    }
    if (memchr(at, ' ', bytes) != NULL) {
        return "the name of a header has a blank in it";
    }
    if (head->part == WEB_HEAD_VALUE) {
        end_value(head);
    } else if (head->part == WEB_HEAD_FIRST) {
        buffer_put_u8(&head->text, 0);
    }
    head->part = WEB_HEAD_NAME;
    buffer_put(&head->text, at, bytes);
    return NULL;
}

const char *web_head_value(struct web_head *head, const char *at, size_t bytes)
{
    if (head->is_read) {
        return NULL;
    }
    if (memchr(at, '\0', bytes) != NULL) { /* http-parser lets one pass that begins a value */
        return "the value of a header has a zero in it";
    }
    if (head->part == WEB_HEAD_NAME) {
        buffer_put_u8(&head->text, 0);
        head->part = WEB_HEAD_VALUE;
    }
    buffer_put(&head->text, at, bytes);
    return NULL;
}

const char *web_head_end(struct web_head *head, const http_parser *parser)
{
    if (head->part == WEB_HEAD_VALUE) {
        end_value(head);
    } else {
        buffer_put_u8(&head->text, 0);
    }
    head->is_read = true;
    if (head->text.failed) {
        return "the head is too large";
    }
    return parser->http_major == 1 && parser->http_minor <= 1
               ? NULL
               : "only HTTP/1.1 and HTTP/1.0 are spoken";
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* What http-parser accepts without a trace: it joins a line that begins with a blank to the one
 * before. Returns the bytes in front of it and within the limit. */
static size_t check_lines(struct web_head *head, const char *data, size_t bytes)
{
    size_t room = head->max - head->bytes;
    size_t count = bytes < room ? bytes : room;

    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)data[i];
        if (head->before == '\n' && (byte == ' ' || byte == '\t')) {
            return i;
        }
        head->before = byte;
    }
    return count;
}

size_t web_head_feed(struct web_head *head, http_parser *parser,
                     const http_parser_settings *settings, const char *data, size_t bytes,
                     const char **ret_fault)
{
    size_t count = check_lines(head, data, bytes);
    /* No bytes would be the end of the connection. */
    size_t taken = count > 0 ? http_parser_execute(parser, settings, data, count) : 0;

    head->bytes += taken;
    *ret_fault = NULL;
    if (taken == count && count < bytes && !head->is_read) {
        *ret_fault = head->bytes >= head->max
                         ? "the head is too large"
                         : "a header goes on in a line that begins with a blank";
    }
    return taken;
}

const char *web_head_explain(enum http_errno code)
{
    switch (code) {
    case HPE_INVALID_METHOD:
    case HPE_INVALID_URL:
    case HPE_INVALID_STATUS:
    case HPE_INVALID_VERSION:
    case HPE_INVALID_CONSTANT:
        return NULL;
    case HPE_UNEXPECTED_CONTENT_LENGTH:
    case HPE_INVALID_CONTENT_LENGTH:
    case HPE_INVALID_TRANSFER_ENCODING:
        return "the length of the body is not clear: Content-Length, Transfer-Encoding";
    case HPE_INVALID_CHUNK_SIZE:
    case HPE_STRICT:
        return "the chunks of the body are malformed";
    default:
        return "the head is malformed: each header needs a name, a colon and a line end";
    }
}

/* ---- Headers --------------------------------------------------------------------------------- */

/* The header behind `at`, a name and its value; NULL: there is none. */
static const char *next_header(const struct web_head *head, const char *at, const char **ret_value)
{
    const char *end = (const char *)head->text.data + head->text.bytes;

    if (at == NULL) { /* behind the first text */
        at = (const char *)head->text.data;
    } else {
        at += strlen(at) + 1;
    }
    at += strlen(at) + 1;
    if (at >= end) {
        return NULL;
    }
    *ret_value = at + strlen(at) + 1;
    return at;
}

size_t web_header_count(const struct web_head *head, const char *name)
{
    const char *value, *at = NULL;
    size_t count = 0;

    while ((at = next_header(head, at, &value)) != NULL) {
        count += strcasecmp(at, name) == 0;
    }
    return count;
}

const char *web_header(const struct web_head *head, const char *name)
{
    const char *value, *at = NULL;

    while ((at = next_header(head, at, &value)) != NULL) {
        if (strcasecmp(at, name) == 0) {
            return value;
        }
    }
    return NULL;
}

static bool list_has(const char *list, const char *item)
{
    size_t bytes = strlen(item);

    while (*list != '\0') {
        list += strspn(list, BLANKS ",");
        if (strncasecmp(list, item, bytes) == 0) {
            const char *behind = list + bytes + strspn(list + bytes, BLANKS);
            if (*behind == ',' || *behind == '\0') {
                return true;
            }
        }
        list += strcspn(list, ",");
    }
    return false;
}

bool web_header_lists(const struct web_head *head, const char *name, const char *item)
{
    const char *value, *at = NULL;

    while ((at = next_header(head, at, &value)) != NULL) {
        if (strcasecmp(at, name) == 0 && list_has(value, item)) {
            return true;
        }
    }
    return false;
}
