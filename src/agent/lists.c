/* Lists of values: what one message has no room for goes out part by part, as the client reads.
 *
 *   list_reply ─┬▶ one message
 *               └▶ copied ─▶ a part ─▶ the socket has taken it ─▶ the next part … ─▶ the last
 *
 * Other replies and events pass between two parts. The copies are bounded for each client and for
 * the agent. A client that takes no part for a client lease is closed.
 */
#include "agent/agent_int.h"
#include "provider/listing.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { FRAME_BYTES = 128 }; /* of a message, beside its values; of a value, beside its bytes */

struct list {
    struct list *next;
    int64_t id; /* of the request */
    struct listing values;
    size_t sent;   /* how many of them */
    instant moved; /* when a part was sent */
};

/* ---- Messages -------------------------------------------------------------------------------- */

json_t *values_json(const struct provider_value *values, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count && list; i++) {
        json_t *value = json_pack("{s:s, s:I}", "key", values[i].key, "revision",
                                  (json_int_t)values[i].revision);
        if (value && values[i].data) {
            local_put_bytes(value, values[i].data, values[i].bytes);
        } else if (value) {
            (void)json_object_set_new(value, "nothing", json_true());
        }
        (void)json_array_append_new(list, value);
    }
    return list;
}

/* The most that a value can take in a message. */
static size_t cost(const struct provider_value *value)
{
    size_t bytes = value->data ? value->bytes : 0;

    return FRAME_BYTES + 6 * strlen(value->key) +
           (bytes <= LOCAL_TEXT_MAX ? 6 * bytes : bytes / 3 * 4 + 4);
}

size_t values_that_fit(const struct provider_value *values, size_t count)
{
    size_t total = FRAME_BYTES, i = 0;

    while (i < count && (i == 0 || total + cost(&values[i]) <= LOCAL_LINE_MAX)) {
        total += cost(&values[i++]);
    }
    return i;
}

/* ---- Long lists ------------------------------------------------------------------------------ */

static void list_free(struct client *client, struct list *list)
{
    LL_DELETE(client->lists, list);
    client->list_bytes -= list->values.bytes;
    client->agent->list_bytes -= list->values.bytes;
    listing_fini(&list->values);
    free(list);
}

static void send_part(struct client *client, struct list *list)
{
    const struct provider_value *next = list->values.values + list->sent;
    size_t left = list->values.count - list->sent, count = values_that_fit(next, left);
    json_t *part = json_pack("{s:o}", "values", values_json(next, count));

    if (!part || (count < left && json_object_set_new(part, "more", json_true()) != 0)) {
        json_decref(part);
        client_send(client, NULL); /* no memory: a list must not look whole without the rest */
        return;
    }
    list->sent += count;
    list->moved = clock_now();
    client_reply(client, list->id, part);
}

void lists_go_on(struct client *client)
{
    while (client->lists && local_is_drained(client->local)) {
        struct list *list = client->lists;
        send_part(client, list);
        if (list->sent == list->values.count) {
            list_free(client, list);
        }
    }
}

static int check_room(const struct client *client, size_t bytes, struct baton_error *reterr)
{
    if (bytes > LOCAL_LIST_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "the values are more than %d MiB: list a longer prefix, or watch",
                         LOCAL_LIST_MAX >> 20);
    }
    if (client->list_bytes + bytes > LOCAL_LIST_MAX ||
        client->agent->list_bytes + bytes > AGENT_LISTS_MAX) {
        return error_set(reterr, BATON_EBUSY,
                         "earlier lists, of this client or of others, are not read yet");
    }
    return BATON_OK;
}

static int copy(struct listing *ret, const struct provider_value *values, size_t count,
                struct baton_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (listing_add(ret, &values[i]) != BATON_OK) {
            listing_fini(ret);
            return error_set(reterr, BATON_ENOMEM, "no memory for a list");
        }
    }
    return BATON_OK;
}

static int begin(struct client *client, int64_t id, const struct provider_value *values,
                 size_t count, struct baton_error *reterr)
{
    struct list *list;
    size_t bytes = 0;
    int code;

    for (size_t i = 0; i < count; i++) {
        bytes += listing_cost(&values[i]);
    }
    code = check_room(client, bytes, reterr);
    if (code != BATON_OK) {
        return code;
    }
    list = calloc(1, sizeof(*list));
    code = list ? copy(&list->values, values, count, reterr)
                : error_set(reterr, BATON_ENOMEM, "no memory for a list");
    if (code != BATON_OK) {
        free(list);
        return code;
    }
    list->id = id;
    list->moved = clock_now();
    client->list_bytes += bytes;
    client->agent->list_bytes += bytes;
    LL_APPEND(client->lists, list);
    lists_go_on(client);
    return BATON_OK;
}

void list_reply(struct client *client, int64_t id, const struct provider_value *values,
                size_t count)
{
    struct baton_error error = {0};
    int code;

    if (values_that_fit(values, count) == count) {
        client_reply(client, id, json_pack("{s:o}", "values", values_json(values, count)));
        return;
    }
    code = begin(client, id, values, count, &error);
    if (code != BATON_OK) {
        client_fail(client, id, code, error.message);
    }
}

void lists_end(struct client *client)
{
    while (client->lists) {
        list_free(client, client->lists); /* NOLINT(clang-analyzer-unix.Malloc) */
    }
}

void lists_sweep(struct agent *agent, instant now)
{
    for (struct client *client = agent->clients; client; client = client->hh.next) {
        if (client->lists &&
            instant_since(now, client->lists->moved).ns > agent->config.client_lease.ns) {
            log_warning(agent->config.logger, "client-closed", LOG_I64("pid", client->peer.pid),
                        LOG_STR("process", client->tenant ? client->tenant->name : NULL),
                        LOG_STR("reason", "it does not read the list that it asked for"));
            local_close(client->local);
        }
    }
}
