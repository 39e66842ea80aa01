#include "web/response.h"

#include "base/error.h"

/* ---- What http-parser reports ---------------------------------------------------------------- */

/* What the callbacks return; NO_BODY and UPGRADED are on_head's. */
enum { STOP = -1, GO_ON = 0, NO_BODY = 1, UPGRADED = 2 };

static int refuse(struct web_response *response, int code, const char *reason)
{
    if (reason != NULL) {
        response->code = code;
        response->reason = reason;
        return STOP;
    }
    return GO_ON;
}

static int on_name(http_parser *parser, const char *at, size_t bytes)
{
    struct web_response *response = parser->data;

    return refuse(response, BATON_EPROTO, web_head_name(&response->head, at, bytes));
}

static int on_value(http_parser *parser, const char *at, size_t bytes)
{
    struct web_response *response = parser->data;

    return refuse(response, BATON_EPROTO, web_head_value(&response->head, at, bytes));
}

static bool is_interim(const struct web_response *response)
{
    return response->status < 200 && response->status != 101;
}

/* The lengths that such a response names are not of it (RFC 9112, 6.3). */
static bool has_no_body(const struct web_response *response)
{
    return response->has_no_body || response->status < 200 || response->status == 204 ||
           response->status == 304;
}

static const char *length_fault(const http_parser *parser)
{
    bool has_length = (parser->flags & F_CONTENTLENGTH) != 0;
    bool has_chunks = (parser->flags & F_CHUNKED) != 0;

    return (parser->uses_transfer_encoding && has_chunks) ||
                   (!parser->uses_transfer_encoding && has_length)
               ? NULL
               : "the response has neither a length nor chunks, so its end cannot be seen";
}

static int on_head(http_parser *parser)
{
    struct web_response *response = parser->data;
    const char *fault = web_head_end(&response->head, parser);

    response->status = parser->status_code;
    if (fault != NULL) {
        return refuse(response, response->head.text.failed ? BATON_ETOOBIG : BATON_EPROTO, fault);
    }
    if (response->status < 100 || response->status > 599) {
        return refuse(response, BATON_EPROTO, "the status of the response is none of HTTP");
    }
    if (response->status == 101) {
        return UPGRADED;
    }
    if (has_no_body(response)) {
        return NO_BODY;
    }
    fault = length_fault(parser);
    if (fault == NULL && !parser->uses_transfer_encoding &&
        parser->content_length > response->body.max_bytes) {
        return refuse(response, BATON_ETOOBIG, "the body is too large");
    }
    return refuse(response, BATON_EPROTO, fault);
}

static int on_body(http_parser *parser, const char *at, size_t bytes)
{
    struct web_response *response = parser->data;

    buffer_put(&response->body, at, bytes);
    return refuse(response, BATON_ETOOBIG, response->body.failed ? "the body is too large" : NULL);
}

static int on_complete(http_parser *parser)
{
    struct web_response *response = parser->data;

    response->is_complete = response->reason == NULL;
    http_parser_pause(parser, 1);
    return GO_ON;
}

static const http_parser_settings settings = {.on_header_field = on_name,
                                              .on_header_value = on_value,
                                              .on_headers_complete = on_head,
                                              .on_body = on_body,
                                              .on_message_complete = on_complete};

/* ---- Reading --------------------------------------------------------------------------------- */

static void begin(struct web_response *response)
{
    http_parser_init(&response->parser, HTTP_RESPONSE);
    response->parser.data = response;
    response->is_complete = false;
}

void web_response_init(struct web_response *response, bool is_to_head, size_t head_max,
                       size_t body_max)
{
    *response = (struct web_response){.has_no_body = is_to_head};
    web_head_init(&response->head, head_max);
    buffer_init(&response->body, body_max);
    begin(response);
}

void web_response_fini(struct web_response *response)
{
    web_head_fini(&response->head);
    buffer_fini(&response->body);
}

static enum web_read result(struct web_response *response)
{
    enum http_errno code = HTTP_PARSER_ERRNO(&response->parser);

    if (response->reason == NULL && !response->is_complete && code != HPE_OK) {
        const char *fault = web_head_explain(code);
        (void)refuse(response, BATON_EPROTO,
                     fault != NULL ? fault : "what came is not a response of HTTP");
    }
    return response->reason != NULL ? WEB_READ_REFUSED
           : response->is_complete  ? WEB_READ_WHOLE
                                    : WEB_READ_MORE;
}

/* The next response of the bytes, which may be an interim one. */
static enum web_read read_one(struct web_response *response, const char *data, size_t bytes,
                              size_t *ret_taken)
{
    const char *fault = NULL;

    *ret_taken = 0;
    if (!response->head.is_read) {
        *ret_taken =
            web_head_feed(&response->head, &response->parser, &settings, data, bytes, &fault);
        if (fault != NULL && result(response) == WEB_READ_MORE) {
            (void)refuse(response,
                         response->head.bytes >= response->head.max ? BATON_ETOOBIG : BATON_EPROTO,
                         fault);
        }
    }
    if (result(response) == WEB_READ_MORE && *ret_taken < bytes) {
        *ret_taken += http_parser_execute(&response->parser, &settings, data + *ret_taken,
                                          bytes - *ret_taken);
    }
    return result(response);
}

/* The head's limit is not set back: a server could send interim responses without an end. */
static void skip(struct web_response *response)
{
    size_t bytes = response->head.bytes;

    web_head_next(&response->head);
    response->head.bytes = bytes;
    begin(response);
}

enum web_read web_response_read(struct web_response *response, const void *data, size_t bytes,
                                size_t *ret_taken)
{
    enum web_read read = WEB_READ_MORE;

    *ret_taken = 0;
    while (read == WEB_READ_MORE && *ret_taken < bytes) {
        size_t taken;
        read = read_one(response, (const char *)data + *ret_taken, bytes - *ret_taken, &taken);
        *ret_taken += taken;
        if (read == WEB_READ_WHOLE && is_interim(response)) {
            skip(response);
            read = WEB_READ_MORE;
        }
    }
    return read;
}
