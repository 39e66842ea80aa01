#include "provider/raft/channels.h"

#include "provider/limits.h"

#include <stdlib.h>
#include <string.h>

enum {
    TURN_PARTS = 16, /* given to one connection before the loop turns */
    DELIVERIES_BYTES_MAX = 32 * 1024 * 1024,
    LOG_EVERY_S = 60,
};

struct subscriber {
    struct subscriber *next;
    provider_message_cb on_message;
    void *userdata;
    bool is_gone; /* freed when no delivery is under way */
    char channel[];
};

struct channels {
    struct subscriber *subscribers;
    struct parcels deliveries;
    uint64_t last_number;
    bool is_delivering;
    instant logged; /* the latest warning of a dropped message */
};

/* ---- Life ------------------------------------------------------------------------------------ */

struct channels *channels_new(void)
{
    struct channels *channels = calloc(1, sizeof(*channels));

    if (channels) {
        parcels_init(&channels->deliveries, DELIVERIES_BYTES_MAX);
    }
    return channels;
}

static void sweep(struct channels *channels)
{
    struct subscriber **at = &channels->subscribers;

    while (!channels->is_delivering && *at) {
        struct subscriber *subscriber = *at;
        if (subscriber->is_gone) {
            *at = subscriber->next;
            free(subscriber);
        } else {
            at = &subscriber->next;
        }
    }
}

void channels_free(struct channels *channels)
{
    if (channels) {
        (void)parcels_end(&channels->deliveries);
        for (struct subscriber *one = channels->subscribers; one; one = one->next) {
            one->is_gone = true;
        }
        sweep(channels);
        free(channels);
    }
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Whether the socket would take more now. */
static bool give_parts(struct connection *connection)
{
    struct part part;

    for (int i = 0; i < TURN_PARTS; i++) {
        if (!connection->is_open || stream_has_backlog(connection->stream) ||
            !parcels_next_part(&connection->outgoing, &part)) {
            return false;
        }
        connection_send_part(connection, &part);
        parcels_part_sent(&connection->outgoing, &part);
    }
    return connection->outgoing.count > 0;
}

static bool give_parts_to_all(struct node *node)
{
    bool is_more = false;

    for (struct connection *one = node->accepted; one; one = one->next) {
        is_more |= give_parts(one);
    }
    for (struct link *link = node->links; link; link = link->next) {
        is_more |= link->connection && give_parts(link->connection);
        is_more |= link->beside && give_parts(link->beside);
    }
    return is_more;
}

static void on_turn(uv_idle_t *turn);

static void resume(struct node *node)
{
    if (!node->is_closing && !uv_is_active((uv_handle_t *)&node->turn)) {
        (void)uv_idle_start(&node->turn, on_turn);
    }
}

void channels_drained(struct connection *connection)
{
    if (give_parts(connection)) {
        resume(connection->node);
    }
}

static void note_dropped(struct node *node, const char *receiver)
{
    instant now = clock_now();

    node->counters.messages_dropped++;
    if (node->channels->logged.ns == 0 ||
        instant_since(now, node->channels->logged).ns >= SPAN_S(LOG_EVERY_S).ns) {
        node->channels->logged = now;
        log_warning(node->logger, "message-dropped", LOG_STR("receiver", receiver),
                    LOG_U64("dropped", node->counters.messages_dropped),
                    LOG_STR("text", "messages are published faster than it takes them"));
    }
}

static void send_to_peers(struct node *node, struct parcel *parcel)
{
    const struct raft_configuration *members = raft_get_configuration(node->raft);

    for (size_t i = 0; i < members->count; i++) {
        const struct raft_member *member = &members->members[i];
        struct connection *connection =
            member->id != node->id ? connection_for_parcels(node, member->id) : NULL;
        if (!connection) {
            continue;
        }
        if (parcels_add(&connection->outgoing, parcel)) {
            node->counters.messages_sent++;
            channels_drained(connection);
        } else {
            note_dropped(node, member->name);
        }
    }
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static bool is_read(const struct channels *channels, const char *channel)
{
    const struct subscriber *one = channels->subscribers;

    while (one && (one->is_gone || strcmp(one->channel, channel) != 0)) {
        one = one->next;
    }
    return one != NULL;
}

static void deliver(struct channels *channels, const struct parcel *parcel)
{
    struct parcel_message message;

    if (!parcel_read(&message, parcel->data, parcel->bytes)) {
        return; /* it was read before */
    }
    for (struct subscriber *one = channels->subscribers; one; one = one->next) {
        if (!one->is_gone && strcmp(one->channel, message.channel) == 0) {
            one->on_message(one->userdata, message.channel, message.data, message.bytes);
        }
    }
}

/* Not within the caller, which may be a subscriber's function itself. */
static void deliver_soon(struct node *node, struct parcel *parcel)
{
    if (parcel && parcels_add(&node->channels->deliveries, parcel)) {
        resume(node);
    } else {
        note_dropped(node, node->options.node);
    }
}

/* Those that wait now: a function that publishes has its message in the next turn. */
static void deliver_all(struct channels *channels)
{
    channels->is_delivering = true;
    for (size_t left = channels->deliveries.count; left > 0; left--) {
        struct parcel *parcel = parcels_take(&channels->deliveries);
        if (!parcel) {
            break; /* a function has closed the provider */
        }
        deliver(channels, parcel);
        parcel_unref(parcel);
    }
    channels->is_delivering = false;
    sweep(channels);
}

static void on_turn(uv_idle_t *turn)
{
    struct node *node = turn->data;
    bool is_more = give_parts_to_all(node);

    deliver_all(node->channels);
    if (!is_more && node->channels->deliveries.count == 0) {
        (void)uv_idle_stop(turn);
    }
}

void channels_end(struct node *node)
{
    struct channels *channels = node->channels;

    (void)give_parts_to_all(node);
    (void)parcels_end(&channels->deliveries);
    for (struct subscriber *one = channels->subscribers; one; one = one->next) {
        one->is_gone = true;
    }
    sweep(channels);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* A parcel that was overtaken on another connection comes too late. A later process of that member
 * counts from the beginning, and an earlier one is heard no more. */
static bool is_in_order(const struct connection *connection, uint64_t number)
{
    struct acquaintance *known = acquaintance_of(connection->node, connection->id);

    if (!known || connection->incarnation < known->parcel_incarnation) {
        return false;
    }
    if (connection->incarnation > known->parcel_incarnation) {
        known->parcel_incarnation = connection->incarnation;
        known->last_parcel = 0;
    }
    if (number <= known->last_parcel) {
        return false;
    }
    known->last_parcel = number;
    return true;
}

static int take_in(struct connection *connection, uint64_t number, const void *data, size_t bytes)
{
    struct node *node = connection->node;
    struct parcel_message message;
    struct parcel *parcel;

    if (!parcel_read(&message, data, bytes)) {
        return BATON_EPROTO;
    }
    if (!raft_configuration_find(raft_get_configuration(node->raft), connection->id) ||
        !is_in_order(connection, number)) {
        node->counters.messages_dropped++;
        return BATON_OK;
    }
    node->counters.messages_received++;
    if (is_read(node->channels, message.channel)) {
        parcel = parcel_of_bytes(number, data, bytes);
        deliver_soon(node, parcel);
        parcel_unref(parcel);
    }
    return BATON_OK;
}

int channels_receive(struct connection *connection, const struct part *part)
{
    const void *data = NULL;
    int code;

    if (!assembly_take(&connection->incoming, part, &data)) {
        return BATON_OK;
    }
    code = take_in(connection, part->parcel, data, part->parcel_bytes);
    assembly_clear(&connection->incoming);
    return code;
}

/* ---- Functions of the provider --------------------------------------------------------------- */

int channels_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                     provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    struct channels *channels = node->channels;
    struct parcel *parcel;
    int code = limits_check(channel, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (!node->state) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "channel \"%.60s\": messages can be published once this node takes part "
                         "in its election",
                         channel);
    }
    parcel = parcel_of_message(channels->last_number + 1, channel, data, bytes);
    if (!parcel) {
        return error_set(reterr, BATON_ENOMEM, "channel \"%.60s\": out of memory", channel);
    }
    channels->last_number++;
    send_to_peers(node, parcel);
    if (is_read(channels, channel)) {
        deliver_soon(node, parcel);
    }
    parcel_unref(parcel);
    done(userdata, BATON_OK, NULL);
    return BATON_OK;
}

int channels_subscribe(struct provider *provider, const char *channel,
                       provider_message_cb on_message, void *userdata, struct baton_error *reterr)
{
    struct channels *channels = ((struct node *)provider)->channels;
    size_t bytes = strlen(channel) + 1;
    struct subscriber *subscriber;
    int code = limits_check(channel, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    subscriber = calloc(1, sizeof(*subscriber) + bytes);
    if (!subscriber) {
        return error_set(reterr, BATON_ENOMEM, "channel \"%.60s\": out of memory", channel);
    }
    subscriber->on_message = on_message;
    subscriber->userdata = userdata;
    memcpy(subscriber->channel, channel, bytes);
    subscriber->next = channels->subscribers;
    channels->subscribers = subscriber;
    return BATON_OK;
}

void channels_unsubscribe(struct provider *provider, const char *channel, void *userdata)
{
    struct channels *channels = ((struct node *)provider)->channels;

    for (struct subscriber *one = channels->subscribers; one; one = one->next) {
        if (!one->is_gone && one->userdata == userdata && strcmp(one->channel, channel) == 0) {
            one->is_gone = true;
            break;
        }
    }
    sweep(channels);
}
