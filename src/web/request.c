#include "web/request.h"

#include <string.h>

#define BLANKS " \t"

enum { HOST_BYTES_MAX = 511 }; /* a name has 253, and a port follows */

/* ---- What http-parser reports ---------------------------------------------------------------- */

static int refuse(struct web_request *request, unsigned status, const char *reason)
{
    request->status = status;
    request->reason = reason;
    return 1; /* stops the parser */
}

static int on_target(http_parser *parser, const char *at, size_t bytes)
{
    struct web_request *request = parser->data;

    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)at[i] <= ' ' || at[i] == 0x7f) {
            return refuse(request, 400, "the path has a blank or a control character in it");
        }
    }
    buffer_put(&request->head, at, bytes);
    return 0;
}

/* Drops the blanks behind a value, which http-parser reports as part of it. */
static void end_value(struct web_request *request)
{
    struct buffer *head = &request->head;

    while (head->bytes > 0 && head->data[head->bytes - 1] != '\0' &&
           strchr(BLANKS, head->data[head->bytes - 1]) != NULL) {
        head->bytes--;
    }
    buffer_put_u8(head, 0);
    request->is_in_value = false;
}

static int on_name(http_parser *parser, const char *at, size_t bytes)
{
    struct web_request *request = parser->data;
    struct buffer *head = &request->head;

    if (request->is_head_read) {
        return 0; /* trailers are not kept */
    }
    if (memchr(at, ' ', bytes) != NULL) {
        return refuse(request, 400, "the name of a header has a blank in it");
    }
    if (request->is_in_value) {
        end_value(request);
    } else if (head->bytes > 0 && memchr(head->data, '\0', head->bytes) == NULL) {
        buffer_put_u8(head, 0); /* the target ends */
    }
    buffer_put(head, at, bytes);
    return 0;
}

static int on_value(http_parser *parser, const char *at, size_t bytes)
{
    struct web_request *request = parser->data;

    if (request->is_head_read) {
        return 0;
    }
    if (memchr(at, '\0', bytes) != NULL) { /* http-parser lets one pass that begins a value */
        return refuse(request, 400, "the value of a header has a zero in it");
    }
    if (!request->is_in_value) {
        buffer_put_u8(&request->head, 0); /* the name ends */
        request->is_in_value = true;
    }
    buffer_put(&request->head, at, bytes);
    return 0;
}

static const char *host_fault(const struct web_request *request)
{
    const char *host = web_request_header(request, "host");
    size_t hosts = web_request_count(request, "host");

    if (hosts > 1) {
        return "a request has one Host";
    }
    if (host == NULL) {
        return request->is_http_1_0 ? NULL : "a request of HTTP/1.1 needs a Host";
    }
    if (strlen(host) > HOST_BYTES_MAX) {
        return "the Host is too long";
    }
    for (const char *at = host; *at != '\0'; at++) { /* an empty one is allowed */
        if (*at <= ' ' || *at >= 0x7f || strchr("()\"#,/<>?@\\^`{|}", *at) != NULL) {
            return "the Host is not a name or an address";
        }
    }
    return NULL;
}

static bool has_body(const http_parser *parser)
{
    return parser->uses_transfer_encoding ||
           ((parser->flags & F_CONTENTLENGTH) != 0 && parser->content_length > 0);
}

static int check_body(struct web_request *request)
{
    const http_parser *parser = &request->parser;

    if (!has_body(parser)) {
        return 0;
    }
    if (request->body.max_bytes == 0) {
        return refuse(request, 400, "a GET or HEAD has no body");
    }
    if (!parser->uses_transfer_encoding && parser->content_length > request->body.max_bytes) {
        return refuse(request, 413, "the body is too large");
    }
    request->expects_bytes =
        !request->is_http_1_0 && web_request_lists(request, "expect", "100-continue");
    return 0;
}

static int on_head(http_parser *parser)
{
    struct web_request *request = parser->data;
    bool is_1 = parser->http_major == 1 && parser->http_minor <= 1;
    const char *fault;

    if (request->is_in_value) {
        end_value(request);
    } else {
        buffer_put_u8(&request->head, 0);
    }
    request->is_head_read = true;
    if (request->head.failed) {
        return refuse(request, 431, "the head of the request is too large");
    }
    if (!is_1) {
        return refuse(request, 400, "only HTTP/1.1 and HTTP/1.0 are spoken");
    }
    request->is_http_1_0 = parser->http_minor == 0;
    request->method = http_method_str((enum http_method)parser->method);
    request->is_head = parser->method == HTTP_HEAD;
    request->target = (const char *)request->head.data;
    fault = host_fault(request);
    if (request->body.max_bytes == 0 && parser->method != HTTP_GET && parser->method != HTTP_HEAD) {
        return refuse(request, 405, "only GET and HEAD are answered");
    }
    if (fault == NULL && request->target[0] != '/') {
        fault = "the target must begin with a slash";
    }
    return fault != NULL ? refuse(request, 400, fault) : check_body(request);
}

static int on_body(http_parser *parser, const char *at, size_t bytes)
{
    struct web_request *request = parser->data;

    buffer_put(&request->body, at, bytes);
    return request->body.failed ? refuse(request, 413, "the body is too large") : 0;
}

static int on_complete(http_parser *parser)
{
    struct web_request *request = parser->data;

    request->is_complete = true;
    request->is_upgrade = parser->upgrade;
    request->is_last = request->is_http_1_0 || !http_should_keep_alive(parser);
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings settings = {.on_url = on_target,
                                              .on_header_field = on_name,
                                              .on_header_value = on_value,
                                              .on_headers_complete = on_head,
                                              .on_body = on_body,
                                              .on_message_complete = on_complete};

/* ---- Reading --------------------------------------------------------------------------------- */

static void begin(struct web_request *request)
{
    http_parser_init(&request->parser, HTTP_REQUEST);
    request->parser.data = request;
}

void web_request_init(struct web_request *request, size_t head_max, size_t body_max)
{
    *request = (struct web_request){.head_max = head_max};
    buffer_init(&request->head, head_max + 1);
    buffer_init(&request->body, body_max);
    begin(request);
}

void web_request_fini(struct web_request *request)
{
    buffer_fini(&request->head);
    buffer_fini(&request->body);
}

void web_request_next(struct web_request *request)
{
    struct buffer head = request->head, body = request->body;
    size_t head_max = request->head_max;

    buffer_clear(&head);
    buffer_clear(&body);
    *request = (struct web_request){.head_max = head_max, .head = head, .body = body};
    begin(request);
}

bool web_request_is_empty(const struct web_request *request)
{
    return request->head_bytes == 0;
}

/* What http-parser accepts without a trace: it joins a line that begins with a blank to the one
 * before. Returns the bytes that are of the head and lie within its limit. */
static size_t check_lines(struct web_request *request, const char *data, size_t bytes)
{
    size_t room = request->head_max - request->head_bytes;
    size_t count = bytes < room ? bytes : room;

    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)data[i];
        if (request->before == '\n' && (byte == ' ' || byte == '\t')) {
            return i;
        }
        request->before = byte;
    }
    return count;
}

static const char *explain(enum http_errno code)
{
    switch (code) {
    case HPE_INVALID_METHOD:
        return "the method is not known";
    case HPE_INVALID_URL:
        return "the target is not a path: it begins with a slash and has no blanks";
    case HPE_INVALID_VERSION:
    case HPE_INVALID_CONSTANT:
        return "the path has a blank in it, or no version of HTTP follows it";
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

static enum web_read result(struct web_request *request)
{
    enum http_errno code = HTTP_PARSER_ERRNO(&request->parser);

    if (request->is_complete && request->status == 0) {
        return WEB_READ_REQUEST;
    }
    if (request->status == 0 && code != HPE_OK) {
        (void)refuse(request, 400, explain(code));
    }
    return request->status != 0 ? WEB_READ_REFUSED : WEB_READ_MORE;
}

/* The head, up to `bytes`, of which `count` may be parsed. */
static enum web_read read_head(struct web_request *request, const char *data, size_t bytes,
                               size_t *ret_taken)
{
    size_t count = check_lines(request, data, bytes);

    *ret_taken = http_parser_execute(&request->parser, &settings, data, count);
    request->head_bytes += *ret_taken;
    if (result(request) == WEB_READ_MORE && !request->is_head_read && count < bytes) {
        if (request->head_bytes >= request->head_max) {
            (void)refuse(request, 431, "the head of the request is too large");
        } else {
            (void)refuse(request, 400, "a header goes on in a line that begins with a blank");
        }
    }
    return result(request);
}

enum web_read web_request_read(struct web_request *request, const void *data, size_t bytes,
                               size_t *ret_taken)
{
    const char *at = data;
    enum web_read r;
    size_t taken = 0;

    *ret_taken = 0;
    if (!request->is_head_read) {
        r = read_head(request, at, bytes, ret_taken);
        if (r != WEB_READ_MORE || *ret_taken == bytes) {
            return r;
        }
    }
    taken = http_parser_execute(&request->parser, &settings, at + *ret_taken, bytes - *ret_taken);
    *ret_taken += taken;
    return result(request);
}

/* ---- Headers --------------------------------------------------------------------------------- */

/* The header behind `at`, a name and its value; NULL: there is none. */
static const char *next_header(const struct web_request *request, const char *at,
                               const char **ret_value)
{
    const char *end = (const char *)request->head.data + request->head.bytes;

    if (at == NULL) { /* behind the target */
        at = (const char *)request->head.data;
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

size_t web_request_count(const struct web_request *request, const char *name)
{
    const char *value, *at = NULL;
    size_t count = 0;

    while ((at = next_header(request, at, &value)) != NULL) {
        count += strcasecmp(at, name) == 0;
    }
    return count;
}

const char *web_request_header(const struct web_request *request, const char *name)
{
    const char *value, *at = NULL;

    while ((at = next_header(request, at, &value)) != NULL) {
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

bool web_request_lists(const struct web_request *request, const char *name, const char *item)
{
    const char *value, *at = NULL;

    while ((at = next_header(request, at, &value)) != NULL) {
        if (strcasecmp(at, name) == 0 && list_has(value, item)) {
            return true;
        }
    }
    return false;
}
