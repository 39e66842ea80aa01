/* The verbs of the protocol. */
#include "agent/agent_int.h"

#include <string.h>

static void leave_alone(struct client *client, const json_t *message);
static void report_status(struct client *client, const json_t *message);

static const struct verb {
    const char *name;
    void (*take)(struct client *client, const json_t *message);
    bool is_anybodys; /* it needs no hello: it asks, or changes what is nobody's own */
} verbs[] = {
    {"renew", tenant_renew, false},
    {"campaign", part_campaign, false},
    {"resign", part_resign, false},
    {"drained", part_drained, false},
    {"leave", part_leave, false},
    {"eligible", part_eligible, false},
    {"metadata", part_metadata, false},
    {"leader", part_leader, false},
    {"members", part_members, false},
    {"elections", part_list, true},
    {"pass", part_pass, true},
    {"cordon", part_cordon, true},
    {"get", data_get, true},
    {"list", data_list, true},
    {"put", data_put, true},
    {"watch", data_watch, true},
    {"unwatch", data_unwatch, true},
    {"publish", data_publish, true},
    {"subscribe", data_subscribe, true},
    {"unsubscribe", data_unsubscribe, true},
    {"acting", tenant_acting, false},
    {"gone", tenant_gone, true},
    {"status", report_status, true},
    {"bye", tenant_bye, false},
    {"hello", leave_alone, false},
};

static void leave_alone(struct client *client, const json_t *message)
{
    client_fail(client, request_id(message), BATON_EINVAL, "hello was said already");
}

static void report_status(struct client *client, const json_t *message)
{
    const struct agent *agent = client->agent;
    const struct provider_ops *ops = agent->config.provider->ops;
    json_t *reply = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:o*}", "agent", agent->config.name, "provider", ops->scheme,
        "clients", (json_int_t)HASH_COUNT(agent->clients), "processes",
        (json_int_t)agent->tenant_count, "messages_dropped", (json_int_t)agent->messages_dropped,
        "provider_status", ops->status ? ops->status(agent->config.provider) : NULL);

    client_reply(client, request_id(message), reply);
}

int64_t request_id(const json_t *message)
{
    return json_integer_value(json_object_get(message, "id"));
}

const char *request_text(struct client *client, const json_t *message, const char *key)
{
    const json_t *value = json_object_get(message, key);
    const char *text = json_string_value(value);
    char what[96];

    if (text && strlen(text) == json_string_length(value)) {
        return text;
    }
    (void)snprintf(what, sizeof(what), "\"%s\": must be a text without a NUL", key);
    client_fail(client, request_id(message), BATON_EINVAL, what);
    return NULL;
}

instant request_deadline(const json_t *message)
{
    double most_ms = 3600e3, ms = json_number_value(json_object_get(message, "timeout_ms"));

    ms = ms > 0 ? ms : 10e3;
    return instant_add(clock_now(), SPAN_NS((ms < most_ms ? ms : most_ms) * 1e6));
}

static const struct verb *find(const char *name)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

void request_take(struct client *client, json_t *message)
{
    const char *name = json_string_value(json_object_get(message, "do"));
    const struct verb *verb = name ? find(name) : NULL;
    json_int_t id = request_id(message);

    if (id <= 0 || !name) {
        client_fail(client, 0, BATON_EPROTO,
                    "a request has \"id\", an integer above 0, and \"do\", a text");
        local_close(client->local);
        return;
    }
    if (client->tenant) {
        client->tenant->heard = clock_now();
    }
    if (!verb) {
        client_fail(client, id, BATON_EINVAL, "\"do\": there is no such request");
    } else if (client->tenant || verb->is_anybodys) {
        verb->take(client, message);
    } else {
        tenant_hello(client, message);
    }
}
