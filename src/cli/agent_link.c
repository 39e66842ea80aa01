#include "cli/agent_link.h"

#include "net/line_client.h"

#include <stdlib.h>
#include <string.h>

enum {
    INPUT_MAX = 2 * LOCAL_LINE_MAX, /* a line, and the beginning of the next */
    PARTS_MAX = 512,                /* of a reply; an agent sends at most 385 */
};

static const struct line_server agent = {"agent",
                                         "`baton agent` serves it, and --socket names another one"};

struct agent_link {
    struct line_client client;
    span timeout; /* of a request */
    json_int_t last_id;
    json_t *events; /* those that came before a reply, oldest first */
};

int agent_link_path(char ret[static LOCAL_PATH_MAX], const struct options *options,
                    struct baton_error *reterr)
{
    const char *socket = options_text(options, "socket"), *provider = getenv("BATON_PROVIDER");

    if (!socket && provider && strncmp(provider, "agent:", 6) == 0) {
        return local_agent_url(ret, provider, reterr);
    }
    local_agent_path(ret, socket, false);
    return BATON_OK;
}

int agent_link_open(struct agent_link **ret, const struct options *options, span timeout,
                    struct baton_error *reterr)
{
    struct agent_link *link;
    char path[LOCAL_PATH_MAX];
    int code;

    if (timeout.ns <= 0) {
        return error_set(reterr, BATON_EINVAL, "--timeout 0: leaves no time for the answer");
    }
    code = agent_link_path(path, options, reterr);
    if (code != BATON_OK) {
        return code;
    }
    link = calloc(1, sizeof(*link));
    if (!link || !(link->events = json_array())) {
        free(link);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    link->timeout = timeout;
    code = line_client_open(&link->client, &agent, path, INPUT_MAX, timeout, reterr);
    if (code != BATON_OK) {
        json_decref(link->events);
        free(link);
        return code;
    }
    *ret = link;
    return BATON_OK;
}

void agent_link_close(struct agent_link *link)
{
    if (link) {
        line_client_close(&link->client);
        json_decref(link->events);
        free(link);
    }
}

/* One without an id is the agent's last word: it closes the connection. */
static bool is_reply(const json_t *message, json_int_t id)
{
    const json_t *has = json_object_get(message, "id");

    return has ? json_integer_value(has) == id : json_is_false(json_object_get(message, "ok"));
}

static int check_reply(const json_t *reply, struct baton_error *reterr)
{
    const char *name = json_string_value(json_object_get(reply, "code"));
    const char *text = json_string_value(json_object_get(reply, "error"));

    if (json_is_true(json_object_get(reply, "ok"))) {
        return BATON_OK;
    }
    return error_set(reterr, local_code(name ? name : ""), "%s",
                     text ? text : "the agent refused and gave no reason");
}

static int await_part(json_t **ret, struct agent_link *link, instant limit,
                      struct baton_error *reterr)
{
    int code;

    while ((code = line_client_next(&link->client, limit, ret, reterr)) == BATON_OK) {
        if (is_reply(*ret, link->last_id)) {
            return check_reply(*ret, reterr);
        }
        (void)json_array_append_new(link->events, *ret);
        *ret = NULL;
    }
    return code;
}

/* The first part gets the values of the others. */
static int await_reply(json_t **ret, struct agent_link *link, struct baton_error *reterr)
{
    instant limit = instant_add(clock_now(), link->timeout);
    json_t *part = NULL;
    int code = await_part(ret, link, limit, reterr);
    bool has_more = code == BATON_OK && json_is_true(json_object_get(*ret, "more"));

    for (int count = 1; code == BATON_OK && has_more; count++) {
        code = count < PARTS_MAX ? await_part(&part, link, limit, reterr)
                                 : error_set(reterr, BATON_EPROTO,
                                             "the agent's reply has more than %d parts", PARTS_MAX);
        if (code == BATON_OK) {
            (void)json_array_extend(json_object_get(*ret, "values"),
                                    json_object_get(part, "values"));
            has_more = json_is_true(json_object_get(part, "more"));
        }
        json_decref(part);
        part = NULL;
    }
    return code;
}

int agent_link_ask(json_t **ret, struct agent_link *link, json_t *request,
                   struct baton_error *reterr)
{
    json_t *reply = NULL;
    int code;

    if (!request) {
        return error_set(reterr, BATON_EINVAL,
                         "the request cannot be written: a text of it is not UTF-8, or there is no "
                         "memory");
    }
    (void)json_object_set_new(request, "id", json_integer(++link->last_id));
    code = line_client_send(&link->client, request, reterr);
    json_decref(request);
    code = code ? code : await_reply(&reply, link, reterr);
    if (code == BATON_OK && ret) {
        *ret = reply;
    } else {
        json_decref(reply);
    }
    return code;
}

int agent_link_event(json_t **ret, struct agent_link *link, instant limit,
                     struct baton_error *reterr)
{
    if (json_array_size(link->events) == 0) {
        return line_client_next(&link->client, limit, ret, reterr);
    }
    *ret = json_incref(json_array_get(link->events, 0));
    (void)json_array_remove(link->events, 0);
    return BATON_OK;
}

int agent_link_call(json_t **ret, const struct options *options, json_t *request,
                    struct baton_error *reterr)
{
    struct agent_link *link;
    int code = agent_link_open(&link, options, options_duration(options, "timeout"), reterr);

    if (code != BATON_OK) {
        json_decref(request);
        return code;
    }
    code = agent_link_ask(ret, link, request, reterr);
    agent_link_close(link);
    return code;
}
