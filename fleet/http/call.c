#include "fleet/http/call.h"

#include "base/json_read.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/value.h"
#include "fleet/http/inside.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 16, TAG_ROOM = 64, HEADERS_ROOM = 256, FIELD_ROOM = 128, PER_CLASS = 100 };

const struct web_request *call_request(const struct call *call)
{
    return web_exchange_request(call->exchange);
}

void call_end(struct call *call)
{
    histogram_add(&call->http->counters.times, http_bounds_s,
                  instant_since(clock_now(), call->begun));
    json_decref(call->body);
    free(call->data);
    free(call);
}

/* ---- Answers --------------------------------------------------------------------------------- */

void call_answer(struct call *call, const struct web_answer *answer)
{
    struct web_exchange *exchange = call->exchange;

    call->http->counters.by_class[answer->status / PER_CLASS]++;
    call_end(call);
    if (exchange != NULL) {
        web_exchange_set(exchange, NULL);
        web_answer(exchange, answer);
    }
}

void call_bytes(struct call *call, unsigned status, const char *type, const void *data,
                size_t bytes)
{
    struct web_answer answer = {.status = status,
                                .type = type,
                                .headers = "cache-control: no-store\r\n",
                                .body = data,
                                .bytes = bytes};

    call_answer(call, &answer);
}

void call_nothing(struct call *call)
{
    call_bytes(call, 204, NULL, NULL, 0);
}

static void send_text(struct call *call, unsigned status, const char *text, size_t bytes,
                      const char *headers)
{
    static const char failed[] = "{\"error\":\"out of memory\"}";
    struct web_answer answer = {
        .status = text != NULL ? status : 503,
        .type = "application/json",
        .headers = text != NULL ? headers : "cache-control: no-store\r\nretry-after: 1\r\n",
        .body = text != NULL ? text : failed,
        .bytes = text != NULL ? bytes : sizeof(failed) - 1};

    call_answer(call, &answer);
}

static void send_json(struct call *call, unsigned status, json_t *json, const char *headers)
{
    char *text = json != NULL ? json_text(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

    json_decref(json);
    send_text(call, status, text, text != NULL ? strlen(text) : 0, headers);
    free(text);
}

bool call_has_tag(const struct call *call, const char *tag)
{
    const char *wanted =
        call->exchange != NULL ? web_header(&call_request(call)->head, "if-none-match") : NULL;

    return wanted != NULL && strcmp(call->route->method, "GET") == 0 && strstr(wanted, tag) != NULL;
}

static void put_tag(char ret[static HEADERS_ROOM], const char *tag)
{
    (void)snprintf(ret, HEADERS_ROOM, "cache-control: no-cache\r\netag: %s\r\n", tag);
}

void call_unchanged(struct call *call, const char *tag)
{
    char headers[HEADERS_ROOM];
    struct web_answer answer = {.status = 304, .headers = headers};

    put_tag(headers, tag);
    call_answer(call, &answer);
}

void call_text(struct call *call, const char *text, size_t bytes, const char *tag)
{
    char headers[HEADERS_ROOM] = "cache-control: no-store\r\n";

    if (tag != NULL) {
        put_tag(headers, tag);
    }
    send_text(call, 200, text, bytes, headers);
}

void call_items(struct call *call, struct items *items, const char *tag)
{
    const struct buffer *text = &items->text;

    call_text(call, text->failed ? NULL : (const char *)text->data, text->bytes, tag);
    items_fini(items);
}

void call_json(struct call *call, unsigned status, json_t *json, uint64_t revision)
{
    char tag[TAG_ROOM], headers[HEADERS_ROOM] = "cache-control: no-store\r\n";

    (void)snprintf(tag, sizeof(tag), "\"%" PRIu64 "\"", revision);
    if (status == 200 && revision != 0 && call_has_tag(call, tag)) {
        json_decref(json);
        call_unchanged(call, tag);
        return;
    }
    if (revision != 0) {
        put_tag(headers, tag);
    }
    send_json(call, status, json, headers);
}

void call_live(struct call *call, json_t *json, uint64_t revision)
{
    char headers[HEADERS_ROOM];

    (void)snprintf(headers, sizeof(headers), "cache-control: no-store\r\netag: \"%" PRIu64 "\"\r\n",
                   revision);
    send_json(call, 200, json, headers);
}

/* The way out, in headers. */
static const char *advice(unsigned status)
{
    return status == 401                    ? "cache-control: no-store\r\n"
                                              "www-authenticate: Bearer\r\n"
           : status == 429 || status == 503 ? "cache-control: no-store\r\nretry-after: 1\r\n"
                                            : "cache-control: no-store\r\n";
}

static void refuse(struct call *call, unsigned status, const char *field, const char *reason)
{
    json_t *json = json_pack("{s:s}", "error", reason);

    if (json != NULL && field != NULL) {
        (void)json_object_set_new(json, "field", json_string(field));
    }
    send_json(call, status, json, advice(status));
}

void call_refuse(struct call *call, unsigned status, const char *field, const char *format, ...)
{
    char text[BATON_ERROR_MESSAGE_MAX], reason[BATON_ERROR_MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)text_clean(reason, sizeof(reason), text, strlen(text)); /* it may be cut in a character */
    refuse(call, status, field, reason);
}

static unsigned status_of(int code)
{
    switch (code) {
    case BATON_EINVAL:
    case BATON_EPROTO:
        return 422;
    case BATON_ETOOBIG:
    case BATON_EFULL:
        return 413;
    case BATON_ECONFLICT:
    case BATON_ECORRUPT: /* the key has a value that is none of ours */
    case BATON_EEXIST:
    case BATON_EBUSY:
    case BATON_ENOTLEADER:
        return 409;
    case BATON_ENOENT:
        return 404;
    case BATON_ENOTSUP:
        return 501;
    case BATON_EUNAVAILABLE:
    case BATON_ETIMEDOUT:
    case BATON_ECLOSED:
    case BATON_ECANCELED:
    case BATON_ENOMEM:
        return 503;
    default:
        return 500;
    }
}

/* "cameras[3].rtspUrl: must be …" begins with the path of a field. */
static bool field_of(const char *message, char ret[static FIELD_ROOM])
{
    size_t bytes = strspn(message, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789_.[]");

    if (bytes == 0 || bytes >= FIELD_ROOM || strncmp(message + bytes, ": ", 2) != 0) {
        return false;
    }
    memcpy(ret, message, bytes);
    ret[bytes] = '\0';
    return true;
}

void call_fail(struct call *call, const struct baton_error *error)
{
    char field[FIELD_ROOM];
    unsigned status = status_of(error->code);
    bool has_field =
        (status == 422 || status == 413 || status == 409) && field_of(error->message, field);

    refuse(call, status, has_field ? field : NULL, error->message);
}

void call_fail_write(struct call *call, int code, const struct baton_error *error,
                     bool has_condition)
{
    if (code == BATON_ECONFLICT) {
        call_refuse(call, has_condition ? 412 : 409, NULL,
                    "it was changed by another request in the meantime; read it again, and repeat");
    } else if (error != NULL && error->message[0] != '\0') {
        call_fail(call, error);
    } else {
        call_refuse(call, status_of(code), NULL, "%s", baton_strerror(code));
    }
}

struct web_exchange *call_begin(struct call *call, const char *type)
{
    struct web_answer answer = {
        .status = 200, .type = type, .headers = "cache-control: no-store\r\n"};

    call->http->counters.by_class[2]++;
    web_begin(call->exchange, &answer);
    return call->exchange;
}

/* ---- What was asked -------------------------------------------------------------------------- */

static bool is_json(const char *type)
{
    static const char *const types[] = {"application/json", "application/merge-patch+json"};
    size_t bytes = type != NULL ? strcspn(type, "; ") : 0;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strlen(types[i]) == bytes && strncasecmp(type, types[i], bytes) == 0) {
            return true;
        }
    }
    return false;
}

bool call_body(struct call *call)
{
    const struct web_request *request = call_request(call);
    struct baton_error error;

    if (!is_json(web_header(&request->head, "content-type"))) {
        call_refuse(call, 415, NULL, "the body must be JSON: content-type: application/json");
        return false;
    }
    if (json_read_object((const char *)request->body.data, request->body.bytes,
                         call->route->body_max, DEPTH_MAX, &call->body, &error) != 0) {
        call_refuse(call, 400, NULL, "%s", error.message);
        return false;
    }
    return true;
}

bool call_parameter(struct call *call, const char *name, char *ret, size_t bytes)
{
    ret[0] = '\0';
    if (route_parameter(call_request(call)->target, name, ret, bytes) < 0) {
        call_refuse(call, 400, name, "%s: is longer than %zu bytes, or has a NUL in it", name,
                    bytes - 1);
        return false;
    }
    return true;
}

bool call_number(struct call *call, const char *name, int64_t low, int64_t high, int64_t initial,
                 int64_t *ret)
{
    char text[VALUE_TEXT_MAX];
    struct baton_error error;

    if (!call_parameter(call, name, text, sizeof(text))) {
        return false;
    }
    *ret = initial;
    if (*text != '\0' && value_number(text, low, high, ret, &error) != 0) {
        call_refuse(call, 400, name, "%s: %s", name, error.message);
        return false;
    }
    return true;
}

bool call_flag(struct call *call, const char *name, bool *ret)
{
    char text[VALUE_TEXT_MAX];
    struct baton_error error;

    if (!call_parameter(call, name, text, sizeof(text))) {
        return false;
    }
    *ret = false;
    if (*text != '\0' && value_flag(text, ret, &error) != 0) {
        call_refuse(call, 400, name, "%s: %s", name, error.message);
        return false;
    }
    return true;
}

static bool read_tag(const char *text, uint64_t *ret)
{
    char *end;

    if (*text != '"' || text[1] < '0' || text[1] > '9') {
        return false;
    }
    *ret = strtoull(text + 1, &end, 10);
    return strcmp(end, "\"") == 0 && *ret <= INT64_MAX; /* not PROVIDER_ANY_REVISION */
}

bool call_condition(struct call *call, uint64_t revision, struct condition *ret)
{
    const struct web_head *head = &call_request(call)->head;
    const char *match = web_header(head, "if-match");
    const char *none = web_header(head, "if-none-match");
    uint64_t wanted = 0;

    *ret = (struct condition){match != NULL || none != NULL, PROVIDER_ANY_REVISION};
    if (none != NULL && strcmp(none, "*") != 0) {
        call_refuse(call, 400, NULL, "If-None-Match: of a change it must be *");
        return false;
    }
    if (match != NULL && strcmp(match, "*") != 0 && !read_tag(match, &wanted)) {
        call_refuse(call, 400, NULL, "If-Match: must be the ETag of an answer, in quotes, or *");
        return false;
    }
    if (none != NULL) {
        ret->revision = 0;
    } else if (match != NULL) {
        ret->revision = wanted != 0 ? wanted : revision;
    }
    /* A later one may be known to another process already: the store decides. */
    if ((none != NULL && revision != 0) || (match != NULL && ret->revision < revision) ||
        (match != NULL && ret->revision == 0)) {
        call_refuse(call, 412, NULL,
                    revision == 0 ? "it is not there" : "it is there, with another revision");
        return false;
    }
    return true;
}
