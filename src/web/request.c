#include "web/request.h"

#include <string.h>

enum {
    HOST_BYTES_MAX = 511,  /* a name has 253, and a port follows */
    BODY_KEPT_MAX = 65536, /* bytes of memory that a connection keeps for its next body */
};

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
    buffer_put(&request->head.text, at, bytes);
    return 0;
}

static int on_name(http_parser *parser, const char *at, size_t bytes)
{
    struct web_request *request = parser->data;
    const char *fault = web_head_name(&request->head, at, bytes);

    return fault != NULL ? refuse(request, 400, fault) : 0;
}

static int on_value(http_parser *parser, const char *at, size_t bytes)
{
    struct web_request *request = parser->data;
    const char *fault = web_head_value(&request->head, at, bytes);

    return fault != NULL ? refuse(request, 400, fault) : 0;
}

static const char *host_fault(const struct web_request *request)
{
    const char *host = web_header(&request->head, "host");
    size_t hosts = web_header_count(&request->head, "host");

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
    if (request->body_max == 0) {
        return refuse(request, 400, "a GET or HEAD has no body");
    }
    if (!parser->uses_transfer_encoding && parser->content_length > request->body.max_bytes) {
        return refuse(request, 413, "the body is too large");
    }
    request->expects_bytes =
        !request->is_http_1_0 && web_header_lists(&request->head, "expect", "100-continue");
    return 0;
}

static int on_head(http_parser *parser)
{
    struct web_request *request = parser->data;
    const char *fault = web_head_end(&request->head, parser);

    if (fault != NULL) {
        return refuse(request, request->head.text.failed ? 431 : 400, fault);
    }
    request->is_http_1_0 = parser->http_minor == 0;
    request->method = http_method_str((enum http_method)parser->method);
    request->is_head = parser->method == HTTP_HEAD;
    request->target = (const char *)request->head.text.data;
    fault = host_fault(request);
    if (request->body_max == 0 && parser->method != HTTP_GET && parser->method != HTTP_HEAD) {
        return refuse(request, 405, "only GET and HEAD are answered");
    }
    if (fault == NULL && request->target[0] != '/') {
        fault = "the target must begin with a slash";
    }
    if (fault != NULL || request->status != 0) {
        return fault != NULL ? refuse(request, 400, fault) : 1;
    }
    if (request->limit != NULL) {
        size_t limit = request->limit(request->limit_userdata, request);
        request->body.max_bytes = limit < request->body_max ? limit : request->body_max;
    }
    return check_body(request);
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
    *request = (struct web_request){.method = NULL, .body_max = body_max};
    web_head_init(&request->head, head_max);
    buffer_init(&request->body, body_max);
    begin(request);
}

void web_request_fini(struct web_request *request)
{
    web_head_fini(&request->head);
    buffer_fini(&request->body);
}

void web_request_next(struct web_request *request)
{
    struct web_request next = {.head = request->head,
                               .body = request->body,
                               .body_max = request->body_max,
                               .limit = request->limit,
                               .limit_userdata = request->limit_userdata};

    web_head_next(&next.head);
    if (next.body.capacity > BODY_KEPT_MAX) {
        buffer_fini(&next.body);
        buffer_init(&next.body, next.body_max);
    } else {
        buffer_clear(&next.body);
    }
    next.body.max_bytes = next.body_max;
    *request = next;
    begin(request);
}

static const char *explain(enum http_errno code)
{
    const char *fault = web_head_explain(code);

    return fault != NULL                ? fault
           : code == HPE_INVALID_METHOD ? "the method is not known"
           : code == HPE_INVALID_URL
               ? "the target is not a path: it begins with a slash and has no blanks"
               : "the path has a blank in it, or no version of HTTP follows it";
}

static enum web_read result(struct web_request *request)
{
    enum http_errno code = HTTP_PARSER_ERRNO(&request->parser);

    if (request->is_complete && request->status == 0) {
        return WEB_READ_WHOLE;
    }
    if (request->status == 0 && code != HPE_OK) {
        (void)refuse(request, 400, explain(code));
    }
    return request->status != 0 ? WEB_READ_REFUSED : WEB_READ_MORE;
}

enum web_read web_request_read(struct web_request *request, const void *data, size_t bytes,
                               size_t *ret_taken)
{
    const char *at = data, *fault;

    *ret_taken = 0;
    if (!request->head.is_read) {
        *ret_taken = web_head_feed(&request->head, &request->parser, &settings, at, bytes, &fault);
        if (fault != NULL && result(request) == WEB_READ_MORE) {
            (void)refuse(request, request->head.bytes >= request->head.max ? 431 : 400, fault);
        }
        if (result(request) != WEB_READ_MORE || *ret_taken == bytes) {
            return result(request);
        }
    }
    *ret_taken +=
        http_parser_execute(&request->parser, &settings, at + *ret_taken, bytes - *ret_taken);
    return result(request);
}
