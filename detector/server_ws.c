/* The WebSocket connections of server.h. */
#include "detector/server_int.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static struct peer *find_peer(const struct server *server, uint64_t number)
{
    struct peer *peer = server->peers;
    while (peer != NULL && peer->number != number) {
        peer = peer->next;
    }
    return peer;
}

void server_ws_established(struct server *server, struct lws *wsi, struct peer *peer)
{
    *peer = (struct peer){.wsi = wsi, .number = ++server->last_number};
    peer->last = &peer->first;
    peer->last_sent = &peer->sent;
    buffer_init(&peer->received, server->config.message_max);
    server_link(&server->peers, peer);
    server->connections++;
    if (server->connections > SERVER_CONNECTIONS_MAX) {
        char reason[REASON_MAX + 1];
        (void)snprintf(reason, sizeof(reason),
                       "%d connections are open, the most that are allowed; "
                       "close some, or try again later",
                       SERVER_CONNECTIONS_MAX);
        server->refused++;
        server_drop(server, peer->number, CLOSE_TRY_AGAIN_LATER, reason);
        server->config.hooks.refused(server->config.hooks.userdata);
        return;
    }
    if (server->end_code != 0) {
        server_drop(server, peer->number, server->end_code, server->end_reason);
        return;
    }
    server->config.hooks.connected(server->config.hooks.userdata, peer->number);
}

/* Takes the first message off the queue, for free(); NULL if there is none. */
static struct message *take_message(struct peer *peer)
{
    struct message *message = peer->first;

    if (message != NULL) {
        peer->first = message->next;
        peer->waiting -= message->bytes;
        if (peer->first == NULL) {
            peer->last = &peer->first;
        }
    }
    return message;
}

static void drop_messages(struct peer *peer)
{
    while (peer->first != NULL) {
        free(take_message(peer));
    }
}

void server_ws_closed(struct server *server, struct peer *peer)
{
    uint64_t number = peer->number;

    if (number == 0) {
        return;
    }
    free(peer->unwritten);
    server_receipts_end(server, peer);
    peer->number = 0;
    server_unlink(peer);
    server->connections--;
    drop_messages(peer);
    buffer_fini(&peer->received);
    server->config.hooks.disconnected(server->config.hooks.userdata, number);
}

static void spoil(struct server *server, const struct peer *peer, const char *reason)
{
    server->config.hooks.spoiled(server->config.hooks.userdata, peer->number, reason);
}

static void spoil_and_drop(struct server *server, const struct peer *peer, int code,
                           const char *reason)
{
    spoil(server, peer, reason);
    server_drop(server, peer->number, code, reason);
}

static bool is_utf8(const char *text, size_t bytes)
{
    json_t *string = json_stringn(text, bytes);
    json_decref(string);
    return string != NULL;
}

/* A text message is whole. */
static void hand_out(struct server *server, struct peer *peer)
{
    struct buffer *received = &peer->received;
    const char *text = received->data != NULL ? (const char *)received->data : "";

    if (!is_utf8(text, received->bytes)) {
        spoil_and_drop(server, peer, CLOSE_NOT_TEXT, "a text message that is not UTF-8");
    } else {
        server_receipts_look(server); /* it may be the next owner who speaks */
        server->config.hooks.received(server->config.hooks.userdata, peer->number, text,
                                      received->bytes);
    }
    buffer_clear(received);
}

int server_ws_received(struct server *server, struct lws *wsi, struct peer *peer, const void *in,
                       size_t bytes)
{
    struct buffer *received = &peer->received;
    bool is_whole = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
    const char *fault;
    int code = server_flood_receive(peer, &fault);

    if (peer->close_code != 0) {
        return 0;
    }
    if (code != 0) {
        spoil_and_drop(server, peer, code, fault);
        return 0;
    }
    if (lws_frame_is_binary(wsi)) {
        if (is_whole) {
            spoil(server, peer, "a binary message: only text is read");
        }
        return 0;
    }
    buffer_put(received, in, bytes);
    if (received->failed) {
        char reason[REASON_MAX + 1];
        (void)snprintf(reason, sizeof(reason), "message too large: at most %zu bytes are read",
                       server->config.message_max);
        buffer_fini(received);
        spoil_and_drop(server, peer, CLOSE_TOO_LARGE, reason);
        return 0;
    }
    if (is_whole) {
        hand_out(server, peer);
    }
    return 0;
}

/* lws drops a socket without a word when "writable" asks for the close, so that the peer would
 * never learn why. From outside lws's callbacks it says the reason and waits for the answer: this
 * runs on a timer that is due at once. */
static void sweep(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct peer *peer = server->peers;

    server_heads_sweep(server);
    while (peer != NULL) {
        if (peer->close_code == 0 || peer->is_close_sent || lws_partial_buffered(peer->wsi)) {
            peer = peer->next;
            continue;
        }
        peer->is_close_sent = true;
        lws_close_reason(peer->wsi, (enum lws_close_status)peer->close_code,
                         (unsigned char *)peer->close_reason, strlen(peer->close_reason));
        lws_set_timeout(peer->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
        peer = server->peers; /* that one may be gone */
    }
}

void server_sweep_soon(struct server *server)
{
    (void)uv_timer_start(&server->sweeper, sweep, 0, 0);
}

/* The system has all of the message that was written last. */
static void on_written(struct server *server, struct peer *peer)
{
    struct message *message = peer->unwritten;

    if (message != NULL) {
        peer->unwritten = NULL;
        server_receipts_await(server, peer, message);
    }
}

/* Writes the oldest message. What of it the socket has no room for lws keeps, and does not call us
 * again before that is written too. */
static int write_message(struct server *server, struct lws *wsi, struct peer *peer)
{
    struct message *message = take_message(peer);
    int sent = lws_write(wsi, message->room + LWS_PRE, message->bytes, LWS_WRITE_TEXT);

    if (sent < 0 || !message->with_receipt) {
        free(message);
    } else {
        peer->unwritten = message;
    }
    if (sent < 0) {
        return -1;
    }
    if (!lws_partial_buffered(wsi)) {
        on_written(server, peer);
    }
    peer->is_choked = lws_send_pipe_choked(wsi) != 0;
    return 0;
}

int server_ws_writable(struct server *server, struct lws *wsi, struct peer *peer)
{
    peer->is_choked = false;
    on_written(server, peer);
    if (peer->is_ping_due && peer->close_code == 0) {
        return server_ping_write(peer);
    }
    if (peer->first != NULL && write_message(server, wsi, peer) != 0) {
        return -1;
    }
    if (peer->close_code != 0) {
        server_sweep_soon(server);
    } else if (peer->first != NULL || peer->is_choked) {
        lws_callback_on_writable(wsi);
    } else {
        server->config.hooks.drained(server->config.hooks.userdata, peer->number);
    }
    return 0;
}

bool server_send(struct server *server, uint64_t number, const char *text, size_t bytes,
                 bool with_receipt)
{
    struct peer *peer = find_peer(server, number);
    struct message *message;

    if (peer == NULL || peer->close_code != 0 || (with_receipt && peer->is_choked) ||
        bytes > (size_t)SERVER_BACKLOG_MAX - peer->waiting) {
        return false;
    }
    message = malloc(sizeof(*message) + LWS_PRE + bytes);
    if (message == NULL) {
        return false;
    }
    message->next = NULL;
    message->bytes = bytes;
    message->with_receipt = with_receipt;
    memcpy(message->room + LWS_PRE, text, bytes);
    *peer->last = message;
    peer->last = &message->next;
    peer->waiting += bytes;
    lws_callback_on_writable(peer->wsi);
    return true;
}

void server_drop(struct server *server, uint64_t number, int code, const char *reason)
{
    struct peer *peer = find_peer(server, number);

    if (peer != NULL && peer->close_code == 0) {
        server_receipts_presume(server, peer);
        peer->close_code = code;
        (void)snprintf(peer->close_reason, sizeof(peer->close_reason), "%s", reason);
        drop_messages(peer);
        /* Of a message that is half written the rest goes first: who does not read it in time is
         * cut off. */
        lws_set_timeout(peer->wsi, PENDING_TIMEOUT_USER_OK, CLOSE_WITHIN_S);
        lws_callback_on_writable(peer->wsi);
        server_sweep_soon(server);
    }
}

void server_end(struct server *server, int code, const char *reason)
{
    server->end_code = code;
    (void)snprintf(server->end_reason, sizeof(server->end_reason), "%s", reason);
    for (struct peer *peer = server->peers; peer != NULL; peer = peer->next) {
        server_drop(server, peer->number, code, reason);
    }
}
