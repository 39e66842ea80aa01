/* Lists of values: what one message has no room for goes out part by part, as the client reads.
 *
 *   list_reply ──┬▶ one message
 *   list_change ─┴▶ copied ─▶ a part ─▶ the socket has taken it ─▶ the next part … ─▶ the last
 *
 * Other replies and events pass between two parts; later changes of the same watch wait behind
 * them. The copies are bounded for each client and for the agent. A client that takes no part for
 * a client lease is closed.
 */
#include "agent/agent_int.h"
#include "provider/listing.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { FRAME_BYTES = 128 }; /* of a message, beside its values; of a value, beside its bytes */

struct list {
    struct list *next;
    int64_t id;    /* of the request */
    bool is_watch; /* its parts are events, and no replies */
    struct listing values;
    size_t sent;   /* how many of them */
    instant moved; /* when a part was sent */
};

/* ---- Messages -------------------------------------------------------------------------------- */

static json_t *values_json(const struct provider_value *values, size_t count)
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

/* How many of the values one message has room for; at least one. */
static size_t values_that_fit(const struct provider_value *values, size_t count)
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

/* NULL: out of memory. */
static json_t *message_of(int64_t id, bool is_watch, const struct provider_value *values,
                          size_t count)
{
    json_t *list = values_json(values, count);

    return is_watch ? json_pack("{s:s, s:I, s:o}", "event", "change", "watch", (json_int_t)id,
                                "values", list)
                    : json_pack("{s:I, s:b, s:o}", "id", (json_int_t)id, "ok", 1, "values", list);
}

static void send_part(struct client *client, struct list *list)
{
    const struct provider_value *next = list->values.values + list->sent;
    size_t left = list->values.count - list->sent, count = values_that_fit(next, left);
    json_t *part = message_of(list->id, list->is_watch, next, count);

    if (!part || (count < left && json_object_set_new(part, "more", json_true()) != 0)) {
        json_decref(part);
        client_send(client, NULL); /* no memory: a list must not look whole without the rest */
        return;
    }
    list->sent += count;
    list->moved = clock_now();
    client_send(client, part);
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

/* After a failure the list has a part of the values. */
static int append(struct client *client, struct list *list, const struct provider_value *values,
                  size_t count, struct baton_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        size_t before = list->values.bytes;
        if (listing_add(&list->values, &values[i]) != BATON_OK) {
            return error_set(reterr, BATON_ENOMEM, "no memory for a list");
        }
        if (!values[i].data) { /* deleted, and not empty */
            list->values.values[list->values.count - 1].data = NULL;
        }
        client->list_bytes += list->values.bytes - before;
        client->agent->list_bytes += list->values.bytes - before;
    }
    return BATON_OK;
}

static size_t bytes_of(const struct provider_value *values, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += listing_cost(&values[i]);
    }
    return bytes;
}

static int begin(struct client *client, const struct list *like,
                 const struct provider_value *values, size_t count, struct baton_error *reterr)
{
    int code = check_room(client, bytes_of(values, count), reterr);
    struct list *list = code == BATON_OK ? malloc(sizeof(*list)) : NULL;

    if (code != BATON_OK) {
        return code;
    }
    if (!list) {
        return error_set(reterr, BATON_ENOMEM, "no memory for a list");
    }
    *list = *like;
    list->moved = clock_now();
    LL_APPEND(client->lists, list);
    code = append(client, list, values, count, reterr);
    if (code != BATON_OK) {
        list_free(client, list);
        return code;
    }
    lists_go_on(client);
    return BATON_OK;
}

void list_reply(struct client *client, int64_t id, const struct provider_value *values,
                size_t count)
{
    struct baton_error error = {0};
    int code;

    if (values_that_fit(values, count) == count) {
        client_send(client, message_of(id, false, values, count));
        return;
    }
    code = begin(client, &(struct list){.id = id}, values, count, &error);
    if (code != BATON_OK) {
        client_fail(client, id, code, error.message);
    }
}

static struct list *list_of_watch(const struct client *client, int64_t id)
{
    struct list *list = client->lists;

    while (list && !(list->is_watch && list->id == id)) {
        list = list->next;
    }
    return list;
}

static void close_client(struct client *client, const char *reason)
{
    log_warning(client->agent->config.logger, "client-closed", LOG_I64("pid", client->peer.pid),
                LOG_STR("process", client->tenant ? client->tenant->name : NULL),
                LOG_STR("reason", reason));
    local_close(client->local);
}

void list_change(struct client *client, int64_t watch, const struct provider_value *values,
                 size_t count)
{
    struct list *list = list_of_watch(client, watch);
    struct baton_error error = {0};
    int code;

    if (!list && values_that_fit(values, count) == count) {
        client_send(client, message_of(watch, true, values, count));
        return;
    }
    if (list) {
        code = check_room(client, bytes_of(values, count), &error);
        code = code ? code : append(client, list, values, count, &error);
    } else {
        code = begin(client, &(struct list){.id = watch, .is_watch = true}, values, count, &error);
    }
    if (code != BATON_OK) {
        close_client(client, error.message); /* a watch must not leave anything out */
    }
}

void list_unwatch(struct client *client, int64_t watch)
{
    struct list *list = list_of_watch(client, watch);

    if (list) {
        list_free(client, list);
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
            close_client(client, "it does not read what it listed or watches");
        }
    }
}
