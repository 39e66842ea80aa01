/* A request on its way through the API, for the handlers: what was asked, and the answer.
 *
 *   on_request ──▶ handler ──call_json, call_refuse …──▶ over
 *                     └── begins a write, keeps the call ──▶ done ──call_json …──▶ over
 *
 * A handler answers exactly once, at once or later; the call ends with its answer. If the client
 * has left in between, the answer goes nowhere, and the handler need not know.
 */
#ifndef FLEET_HTTP_CALL_H
#define FLEET_HTTP_CALL_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "fleet/http/items.h"
#include "fleet/http/routes.h"
#include "web/server.h"

#include <jansson.h>

struct fleet_http;

struct call {
    struct fleet_http *http;
    struct web_exchange *exchange; /* NULL: the client has left */
    const struct route *route;
    char id[ROUTE_ID_MAX]; /* of the path; "": none */
    instant begun;
    json_t *body; /* of call_body(); NULL: none was read */
    void *data;   /* the handler's; freed by free() with the call */
    /* An answer in parts: its client has left; its client has taken all. NULL: none. */
    void (*gone)(struct call *call);
    void (*drained)(struct call *call);
};

/* What If-Match and If-None-Match ask for. */
struct condition {
    bool is_given;
    uint64_t revision; /* 0: absent; PROVIDER_ANY_REVISION: any */
};

const struct web_request *call_request(const struct call *call);

/* The JSON object of the body. False: it is refused (400, 415), and the call is over. */
bool call_body(struct call *call);
/* A parameter of the query; "" if it is not there. False: refused. */
bool call_parameter(struct call *call, const char *name, char *ret, size_t bytes);
/* A number of the query. False: refused. */
bool call_number(struct call *call, const char *name, int64_t low, int64_t high, int64_t initial,
                 int64_t *ret);
bool call_flag(struct call *call, const char *name, bool *ret);

/* Whether the headers fit what is there, at this revision (0: nothing); then what a write has to
 * find. False: refused (412, 400). */
bool call_condition(struct call *call, uint64_t revision, struct condition *ret);

/* Steals the JSON; NULL: out of memory. revision: the ETag; 0: none. With If-None-Match it may
 * become 304. */
void call_json(struct call *call, unsigned status, json_t *json, uint64_t revision);
/* 200 with what changes without a new revision, which is there for If-Match alone. */
void call_live(struct call *call, json_t *json, uint64_t revision);
/* 200 with JSON as text; NULL: out of memory. tag: the ETag, in quotes; NULL: none. */
void call_text(struct call *call, const char *text, size_t bytes, const char *tag);
void call_unchanged(struct call *call, const char *tag); /* 304 */
/* The same of a list that is closed, whose memory it frees. */
void call_items(struct call *call, struct items *items, const char *tag);
void call_bytes(struct call *call, unsigned status, const char *type, const void *data,
                size_t bytes);
void call_nothing(struct call *call); /* 204 */
void call_answer(struct call *call, const struct web_answer *answer);

/* field: NULL where no field is wrong. */
void call_refuse(struct call *call, unsigned status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* With the status that fits the code; a message that begins with the path of a field names it. */
void call_fail(struct call *call, const struct baton_error *error);
/* As call_fail(), but a conflict is 412 if a condition was given. */
void call_fail_write(struct call *call, int code, const struct baton_error *error,
                     bool has_condition);

/* Whether it is a GET whose If-None-Match names the tag, in quotes: then 304. */
bool call_has_tag(const struct call *call, const char *tag);

/* The call becomes an answer in parts: its exchange is the caller's, which calls call_end(). */
struct web_exchange *call_begin(struct call *call, const char *type);
void call_end(struct call *call);

#endif
