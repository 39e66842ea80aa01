/* Pending connections: accepted, but the peer has not greeted yet. Each costs a descriptor and a
 * little memory, so their number and their time are limited. When there are too many, the oldest is
 * closed: a peer of the group greets within a round trip.
 *
 *   accepted ──hello──▶ waits ──its turn──▶ TLS handshake ──▶ greets: no longer pending
 *
 * A TLS handshake costs this node a signature, up to some milliseconds, and the other side next to
 * nothing. So one handshake begins every NODE_HANDSHAKE_EVERY_MS, and in between the loop serves
 * the connections that have greeted: many handshakes delay each other, but no heartbeat. Hosts of
 * members come first; then the youngest connection, since the peer of an older one may have given
 * up.
 */
#include "provider/raft/node.h"

#include <stdio.h>
#include <string.h>

enum { LOOK_EVERY_MS = 1000, LOG_S = 1, LOG_AGAIN_S = 60 };

static bool is_same_host(const char *a, const char *b)
{
    const char *colon = strrchr(a, ':');
    size_t bytes = colon ? (size_t)(colon - a) + 1 : 0;

    return bytes > 0 && strncmp(a, b, bytes) == 0 && !strchr(b + bytes, ':');
}

/* The link to the member that probably dialed: the only member of that host. */
static struct link *probable_link(const struct connection *connection)
{
    const char *address = stream_peer_address(connection->stream);
    struct link *found = NULL;

    if (connection->link) {
        return connection->link;
    }
    for (struct link *link = connection->node->links; link; link = link->next) {
        if (is_same_host(address, link->address)) {
            if (found) {
                return NULL;
            }
            found = link;
        }
    }
    return found;
}

static bool is_logged_lately(const struct refusals *refusals, const char *reason)
{
    bool is_same = strncmp(refusals->reason, reason, sizeof(refusals->reason) - 1) == 0;
    int64_t pause_s = is_same ? LOG_AGAIN_S : LOG_S;

    return instant_since(clock_now(), refusals->logged).ns <= SPAN_S(pause_s).ns;
}

void pending_log(struct connection *connection, const char *event, const char *reason)
{
    struct node *node = connection->node;
    struct link *link = probable_link(connection);
    struct refusals *refusals = link ? &link->refusals : &node->refusals;
    const char *address = stream_peer_address(connection->stream);

    if (is_logged_lately(refusals, reason)) {
        refusals->unlogged++;
        return;
    }
    log_warning(node->logger, event, LOG_STR("peer", link ? link->name : NULL),
                LOG_STR("address", address[0] || !link ? address : link->address),
                LOG_STR("reason", reason), LOG_U64("others", refusals->unlogged));
    refusals->logged = clock_now();
    refusals->unlogged = 0;
    (void)snprintf(refusals->reason, sizeof(refusals->reason), "%s", reason);
}

static void refuse(struct connection *connection, const char *reason)
{
    struct node *node = connection->node;

    pending_end(connection);
    node->counters.refused_pending++;
    pending_log(connection, "peer-refused", reason);
    stream_close(connection->stream);
}

static void on_look(uv_timer_t *timer)
{
    struct node *node = timer->data;
    instant now = clock_now();
    struct connection *next;

    for (struct connection *one = node->accepted; one; one = next) {
        next = one->next;
        if (one->is_pending &&
            instant_since(now, one->since).ns > SPAN_MS(NODE_PENDING_LIFE_MS).ns) {
            refuse(one, "has not greeted in time");
        }
    }
    meeting_look_again(node);
    if (node->pending_count == 0) {
        (void)uv_timer_stop(timer);
    }
}

/* The next one to close. Accepted connections are listed newest first; those from members' hosts
 * are closed last. */
static struct connection *next_to_go(const struct node *node)
{
    struct connection *found = NULL;

    for (struct connection *one = node->accepted; one; one = one->next) {
        if (one->is_pending && (!found || !one->is_from_member || found->is_from_member)) {
            found = one;
        }
    }
    return found;
}

static bool is_from_member(const struct connection *connection)
{
    const char *address = stream_peer_address(connection->stream);

    for (const struct link *link = connection->node->links; link; link = link->next) {
        if (is_same_host(address, link->address) || is_same_host(address, link->last_address)) {
            return true;
        }
    }
    return false;
}

void pending_begin(struct connection *connection)
{
    struct node *node = connection->node;

    connection->is_pending = true;
    connection->is_from_member = is_from_member(connection);
    connection->since = clock_now();
    node->pending_count++;
    if (node->pending_count > NODE_PENDING_MAX) {
        refuse(next_to_go(node), "made room for another one that has not greeted");
    }
    if (!uv_is_active((uv_handle_t *)&node->pending_timer)) {
        (void)uv_timer_start(&node->pending_timer, on_look, LOOK_EVERY_MS, LOOK_EVERY_MS);
    }
}

void pending_end(struct connection *connection)
{
    if (connection->is_pending) {
        connection->is_pending = connection->waits_for_handshake = false;
        connection->node->pending_count--;
    }
}

/* ---- Handshakes ------------------------------------------------------------------------------ */

static struct connection *next_in_turn(const struct node *node)
{
    struct connection *found = NULL;

    for (struct connection *one = node->accepted; one; one = one->next) {
        if (one->waits_for_handshake &&
            (!found || (one->is_from_member && !found->is_from_member))) {
            found = one;
        }
    }
    return found;
}

static void on_turn(uv_timer_t *timer)
{
    struct node *node = timer->data;
    struct connection *connection = node->is_closing ? NULL : next_in_turn(node);
    struct buffer hello;

    if (!connection) {
        return;
    }
    hello = connection->input;
    buffer_init(&connection->input, hello.max_bytes);
    connection->waits_for_handshake = false;
    (void)uv_timer_start(timer, on_turn, NODE_HANDSHAKE_EVERY_MS, 0);
    (void)stream_start_tls(connection->stream, node->tls, hello.data, hello.bytes);
    buffer_fini(&hello);
}

void pending_hello(struct connection *connection, const void *data, size_t bytes)
{
    struct node *node = connection->node;

    buffer_put(&connection->input, data, bytes);
    if (connection->input.failed || connection->input.bytes > NODE_HELLO_BYTES_MAX) {
        refuse(connection, "sent more than the beginning of a handshake");
    } else if (!uv_is_active((uv_handle_t *)&node->handshake_timer)) {
        on_turn(&node->handshake_timer);
    }
}
