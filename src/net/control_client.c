#include "net/control.h"
#include "net/line_client.h"

static const struct line_server node = {"node",
                                        "is the node running, and is this its data directory?"};

int control_call(const char *path, const json_t *request, span timeout, json_t **ret_answer,
                 struct baton_error *reterr)
{
    instant deadline = instant_add(clock_now(), timeout);
    struct line_client client;
    int code = line_client_open(&client, &node, path, CONTROL_ANSWER_MAX, timeout, reterr);

    if (code) {
        return code;
    }
    code = line_client_send(&client, request, reterr);
    code = code ? code : line_client_next(&client, deadline, ret_answer, reterr);
    line_client_close(&client);
    return code;
}

int control_follow(const char *path, const json_t *request, span timeout,
                   bool (*each)(void *userdata, const json_t *line), void *userdata,
                   struct baton_error *reterr)
{
    instant deadline = timeout.ns > 0 ? instant_add(clock_now(), timeout) : INSTANT_NEVER;
    struct line_client client;
    bool goes_on = true;
    int code = line_client_open(&client, &node, path, CONTROL_ANSWER_MAX, timeout, reterr);

    if (code) {
        return code;
    }
    code = line_client_send(&client, request, reterr);
    while (!code && goes_on) {
        json_t *json = NULL;
        code = line_client_next(&client, deadline, &json, reterr);
        if (!code) {
            goes_on = each(userdata, json);
        }
        json_decref(json);
    }
    line_client_close(&client);
    return code;
}
