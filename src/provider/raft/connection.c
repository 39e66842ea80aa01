/* Connections: every node dials every other node (link.c) and sends a greeting first.
 *
 *   dialer ──GREETING──▶ acceptor          both ends check cluster, name and incarnation, and the
 *   dialer ◀──GREETING── acceptor          certificate's name where there is one
 *
 * Then messages go both ways. A node prefers the connection that it dialed, as long as that one
 * makes progress: under packet loss one of the two often stalls while the other does not.
 *
 * A pending connection, which has not greeted, may send one other frame: a death certificate,
 * which proves itself. It may be plain text even where peers use TLS: the first byte shows which.
 */
#include "net/listener.h"
#include "provider/raft/channels.h"
#include "provider/raft/fencing.h"
#include "provider/raft/metadata.h"
#include "provider/raft/node.h"
#include "provider/raft/session_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TLS_RECORD_HANDSHAKE = 0x16 };

/* ---- Sending --------------------------------------------------------------------------------- */

static int write_out(struct connection *connection, unsigned kind)
{
    const struct buffer *output = &connection->node->output;

    return kind < STREAM_KINDS
               ? stream_write_latest(connection->stream, kind, output->data, output->bytes)
               : stream_write(connection->stream, output->data, output->bytes);
}

static void flush_as(struct connection *connection, unsigned kind)
{
    struct node *node = connection->node;

    if (!node->output.failed && node->output.bytes > 0 && !node->is_isolated &&
        write_out(connection, kind) == BATON_OK) {
        node->counters.frames_sent++;
        node->counters.bytes_sent += node->output.bytes;
    }
    buffer_clear(&node->output);
}

static void flush(struct connection *connection)
{
    flush_as(connection, STREAM_KINDS);
}

/* Kinds of message in which a later one to the same peer replaces an earlier one: it asks in a
 * later round, or replies to one. Replacing an unread message is better than queueing behind it. To
 * the core the earlier one is lost, as any message may be. No certificate, entry, snapshot or
 * resignation is of such a kind. STREAM_KINDS: the message replaces nothing. */
static unsigned kind_of(const struct raft_message *message)
{
    switch (message->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE:
    case RAFT_MSG_VOTE_REPLY:
    case RAFT_MSG_HEARTBEAT:
    case RAFT_MSG_HEARTBEAT_REPLY:
        return (unsigned)message->type - RAFT_MSG_PRE_VOTE;
    default:
        return STREAM_KINDS;
    }
}

void connection_send_bare(struct connection *connection, enum frame_type type)
{
    frame_put_bare(&connection->node->output, connection->node->cluster, type);
    flush(connection);
}

void connection_send_part(struct connection *connection, const struct part *part)
{
    frame_put_part(&connection->node->output, connection->node->cluster, part);
    flush(connection);
}

void connection_send_description(struct connection *connection, uint64_t number, uint8_t flags,
                                 const char *metadata)
{
    frame_put_description(&connection->node->output, connection->node->cluster, number, flags,
                          metadata);
    flush(connection);
}

void connection_send_greeting(struct connection *connection, const struct greeting *greeting)
{
    frame_put_greeting(&connection->node->output, connection->node->cluster, greeting);
    flush(connection);
    connection->has_greeted = true;
}

/* The peer closes the connection once it has read this; a pending connection that stays open is
 * closed by us. */
void connection_turn_away(struct connection *connection, enum refusal refusal, const char *why)
{
    struct node *node = connection->node;

    connection->is_turned_away = true;
    node->counters.refused_greeting++;
    frame_put_text(&node->output, node->cluster, FRAME_TURNED_AWAY, refusal, why, strlen(why));
    flush(connection);
}

void connection_ask(struct connection *connection)
{
    if (connection->pins_sent == connection->pins_answered) {
        connection->pin_sent = clock_now();
    }
    connection->pins_sent++;
    connection_send_bare(connection, FRAME_PIN);
}

/* Asks the kernel only now and then, as long as the connection makes progress. */
static bool is_stuck(struct connection *connection)
{
    const struct node *node = connection->node;
    uint64_t now_ms = uv_now(node->loop);
    int64_t every_ms = node->options.settings.election_timeout_min.ns / 1000000;

    if (connection->is_stuck || now_ms - connection->looked_ms >= (uint64_t)every_ms) {
        connection->looked_ms = now_ms;
        connection->is_stuck = stream_is_stuck(connection->stream);
    }
    return connection->is_stuck;
}

static struct connection *dialed_to(const struct node *node, raft_id id)
{
    const struct link *link = link_to(node, id);
    return link && link->connection && link->connection->id == id ? link->connection : NULL;
}

/* The newest accepted connection: the peer may have given up the older ones. */
static struct connection *accepted_from(const struct node *node, raft_id id)
{
    for (struct connection *accepted = node->accepted; accepted; accepted = accepted->next) {
        if (accepted->id == id && accepted->is_open) {
            return accepted;
        }
    }
    return NULL;
}

static struct connection *way_to(const struct node *node, raft_id id)
{
    struct connection *dialed = dialed_to(node, id);
    return dialed ? dialed : accepted_from(node, id);
}

/* The connection of the two that makes progress; if neither does, another is dialed meanwhile. */
static struct connection *best_way_to(const struct node *node, raft_id id)
{
    struct connection *dialed = dialed_to(node, id);
    struct connection *accepted;

    if (dialed && !is_stuck(dialed)) {
        return dialed;
    }
    accepted = accepted_from(node, id);
    if (!dialed) {
        return accepted;
    }
    link_dial_beside(dialed->link);
    return accepted && !is_stuck(accepted) ? accepted : dialed;
}

/* Preferably not where the core's messages go: those would wait for a lost packet of a message. A
 * connection that has parcels keeps the next ones in order. */
struct connection *connection_for_parcels(const struct node *node, raft_id id)
{
    struct connection *dialed = dialed_to(node, id);
    struct connection *accepted = accepted_from(node, id);

    return !accepted || (dialed && dialed->outgoing.count > 0) ? dialed : accepted;
}

bool connection_is_up(const struct node *node, raft_id id)
{
    return way_to(node, id) != NULL;
}

bool connection_has_room(const struct node *node, raft_id id)
{
    const struct connection *connection = best_way_to(node, id);

    return connection && stream_backlog(connection->stream) < NODE_QUEUE_BYTES_DUE;
}

/* The one of the two that best_way_to() did not choose; NULL: there is none. */
static struct connection *other_way_to(const struct node *node, raft_id id,
                                       const struct connection *chosen)
{
    struct connection *dialed = dialed_to(node, id);
    struct connection *accepted = accepted_from(node, id);

    return chosen == dialed ? accepted : dialed;
}

/* Few messages are, and all of them may be repeated. */
static bool is_urgent(const struct raft_message *message)
{
    return message->type == RAFT_MSG_VOTE || message->type == RAFT_MSG_VOTE_REPLY ||
           message->type == RAFT_MSG_TIMEOUT_NOW || message->type == RAFT_MSG_RESIGN ||
           (message->type == RAFT_MSG_APPEND && message->append.is_awaited) ||
           (message->type == RAFT_MSG_APPEND_REPLY && message->append_reply.is_awaited);
}

static void send_by(struct connection *connection, const struct raft_message *message)
{
    struct node *node = connection->node;

    frame_put_message(&node->output, node->cluster, message);
    flush_as(connection, kind_of(message));
}

/* A group without a leader, or a process that a grant has not reached, waits for an urgent message.
 * So it goes both ways, and one packet that is lost delays nothing. */
void connection_send_message(struct node *node, const struct raft_message *message)
{
    struct connection *connection = best_way_to(node, message->to);
    struct connection *other = NULL;

    if (connection && is_urgent(message)) {
        other = other_way_to(node, message->to, connection);
    }
    if (connection) {
        send_by(connection, message);
    }
    if (other) {
        send_by(other, message);
    }
}

void connection_send_bytes(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                           const void *data, size_t bytes)
{
    struct connection *connection = best_way_to(node, to);

    if (connection) {
        frame_put_text(&node->output, node->cluster, type, id, data, bytes);
        flush(connection);
    }
}

void connection_send_urgent(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                            const void *data, size_t bytes)
{
    struct connection *other = other_way_to(node, to, best_way_to(node, to));

    connection_send_bytes(node, to, type, id, data, bytes);
    if (other) {
        frame_put_text(&node->output, node->cluster, type, id, data, bytes);
        flush(other);
    }
}

void connection_send_text(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                          const char *text)
{
    connection_send_bytes(node, to, type, id, text, strlen(text));
}

/* ---- Receiving ------------------------------------------------------------------------------- */

static const char *text_of_refusal(const struct connection *connection, int code)
{
    bool is_clear = connection->node->tls && !connection->is_tls;

    switch (code) {
    case BATON_ETOOBIG:
        return "a longer frame than any of ours";
    case BATON_ENOTSUP:
        return "another version of the protocol; run the same version of baton on all nodes";
    case BATON_EAUTH:
        return "another cluster; give all nodes the same cluster and election";
    case BATON_ECORRUPT:
        return "a frame that was damaged on its way";
    case BATON_EEXIST:
        return connection->wrong[0] ? connection->wrong
               : is_clear           ? "not encrypted; give it the same key-file, or certificates"
                                    : "a message before the greeting";
    default:
        return "a frame with an invalid content";
    }
}

static void refuse(struct connection *connection, int code)
{
    struct node *node = connection->node;
    uint64_t *counter = &node->counters.refused_content;

    switch (code) {
    case BATON_ETOOBIG:
        counter = &node->counters.refused_length;
        break;
    case BATON_ENOTSUP:
        counter = &node->counters.refused_version;
        break;
    case BATON_EAUTH:
        counter = &node->counters.refused_cluster;
        break;
    case BATON_ECORRUPT:
        counter = &node->counters.refused_checksum;
        break;
    case BATON_EEXIST:
        counter = &node->counters.refused_greeting;
        break;
    default:
        break;
    }
    (*counter)++;
    pending_log(connection, "peer-refused", text_of_refusal(connection, code));
    stream_close(connection->stream);
}

void connection_report_peer(struct node *node, raft_id peer, bool is_up)
{
    struct raft_input input = {.type = RAFT_IN_CONNECTION,
                               .connection = {.peer = peer, .is_up = is_up}};
    (void)node_step(node, &input);
}

static void take_message(struct connection *connection, struct raft_message *message)
{
    struct raft_input input = {.type = RAFT_IN_MESSAGE, .message = message};

    meeting_note_message(connection, message);
    message->from = connection->id;
    message->to = connection->node->id;
    message->incarnation = connection->incarnation;
    message->is_outlived =
        proof_is_guardian_only(acquaintance_of(connection->node, connection->id));
    (void)node_step(connection->node, &input);
}

/* Handles a frame of a peer that has greeted. */
static int take_known_frame(struct connection *connection, struct frame *frame)
{
    struct node *node = connection->node;

    fencing_heard(node, connection->id);
    switch (frame->type) {
    case FRAME_PIN:
        connection_send_bare(connection, FRAME_PINNED);
        break;
    case FRAME_PINNED:
        connection->pins_answered += connection->pins_answered < connection->pins_sent;
        connection->pin_sent = clock_now(); /* an upper bound for the next one */
        proof_on_pinned(connection);
        meeting_look_again(node);
        break;
    case FRAME_DESCRIPTION:
        metadata_receive(connection, frame);
        break;
    case FRAME_REQUEST:
        request_receive(node, connection->id, frame);
        break;
    case FRAME_REPLY:
        request_reply(node, connection->id, frame);
        break;
    case FRAME_ORDER:
        state_receive_order(node, connection->id, frame);
        break;
    case FRAME_REFUSED:
        state_receive_refusal(node, frame);
        break;
    case FRAME_RENEWAL:
        if (node->host) {
            session_host_take_renewal(node->host, connection->id, frame);
        }
        break;
    case FRAME_RENEWED:
        if (node->host) {
            session_host_take_renewed(node->host, frame);
        }
        break;
    case FRAME_FENCE:
        fencing_take(node, connection->id, connection->incarnation, frame);
        break;
    case FRAME_PART:
        return channels_receive(connection, &frame->part);
    case FRAME_MESSAGE:
        take_message(connection, &frame->message);
        break;
    case FRAME_GREETING:
    case FRAME_CERTIFICATE: /* only before a greeting */
    case FRAME_TURNED_AWAY: /* handled earlier */
        break;
    }
    return BATON_OK;
}

static int take_frame(struct connection *connection, struct frame *frame)
{
    if (frame->type == FRAME_TURNED_AWAY && connection->has_greeted) {
        meeting_take_refusal(connection, frame);
        return BATON_OK;
    }
    if (connection->is_turned_away) {
        return BATON_OK; /* other frames are ignored */
    }
    if (frame->type == FRAME_GREETING) {
        return meeting_take_greeting(connection, &frame->greeting);
    }
    if (connection->id != RAFT_NOBODY) {
        return take_known_frame(connection, frame);
    }
    if (frame->type == FRAME_CERTIFICATE) {
        proof_on_certificate(connection->node, frame->whole);
        return BATON_OK;
    }
    return BATON_EEXIST;
}

/* Plain text where TLS is required: only a certificate is accepted. */
static bool may_be_taken(const struct connection *connection, const struct frame *frame)
{
    return !connection->node->tls || connection->is_tls || frame->type == FRAME_CERTIFICATE;
}

/* The peer may have accepted our greeting already, and send what it likes: while its own greeting
 * waits, that waits in the kernel. */
static void hold_back(struct connection *connection, bool is_held_back)
{
    if (connection->is_held_back != is_held_back) {
        connection->is_held_back = is_held_back;
        stream_pause(connection->stream, is_held_back);
    }
}

static void take_frames(struct connection *connection)
{
    struct node *node = connection->node;
    size_t used = 0;
    size_t bytes;
    int result = 0;

    for (;;) {
        struct frame frame;
        result = frame_take(&frame, &node->scratch, node->cluster, connection->input.data + used,
                            connection->input.bytes - used);
        if (result <= 0) {
            break;
        }
        bytes = (size_t)result;
        result = may_be_taken(connection, &frame) ? take_frame(connection, &frame) : BATON_EEXIST;
        if (result == MEETING_LATER) {
            break;
        }
        used += bytes;
        node->counters.frames_received++;
        if (result != BATON_OK || !connection->is_open) {
            break;
        }
    }
    buffer_consume(&connection->input, used);
    hold_back(connection,
              result == MEETING_LATER && connection->input.bytes > NODE_PENDING_BYTES_MAX);
    if (result == 0 && connection->id == RAFT_NOBODY &&
        connection->input.bytes > NODE_PENDING_BYTES_MAX) {
        result = BATON_ETOOBIG; /* no greeting is that long: stops buffering */
    }
    if (result < 0 && connection->is_open) {
        refuse(connection, result);
    }
}

void connection_look_again(struct connection *connection)
{
    take_frames(connection);
}

static void on_data(struct stream *stream, const void *data, size_t bytes, void *userdata)
{
    struct connection *connection = userdata;
    struct node *node = connection->node;
    bool is_first = !connection->link && connection->id == RAFT_NOBODY && !connection->is_tls &&
                    connection->input.bytes == 0;
    (void)stream;

    if (node->is_isolated || node->is_closing) {
        return;
    }
    node->counters.bytes_received += bytes;
    if (is_first && node->tls && *(const uint8_t *)data == TLS_RECORD_HANDSHAKE) {
        connection->is_tls = connection->waits_for_handshake = true;
    }
    if (connection->waits_for_handshake) {
        pending_hello(connection, data, bytes);
        return;
    }
    buffer_put(&connection->input, data, bytes);
    if (connection->input.failed) {
        refuse(connection, BATON_ETOOBIG);
        return;
    }
    take_frames(connection);
}

static void on_drain(struct stream *stream, void *userdata)
{
    (void)stream;
    channels_drained(userdata);
}

static void on_open(struct stream *stream, void *userdata)
{
    struct connection *connection = userdata;
    (void)stream;
    connection->is_open = true;
    if (connection->link) {
        connection->is_tls = connection->node->tls != NULL;
        meeting_greet(connection);
    }
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void on_close(struct stream *stream, int code, const char *reason, void *userdata)
{
    struct connection *connection = userdata;
    struct node *node = connection->node;
    struct link *link = connection->link;
    raft_id id = connection->id;

    connection->is_open = false;
    pending_end(connection);
    node->counters.messages_dropped += parcels_end(&connection->outgoing);
    if (!link) {
        if (connection->prev) {
            connection->prev->next = connection->next;
        } else {
            node->accepted = connection->next;
        }
        if (connection->next) {
            connection->next->prev = connection->prev;
        }
    }
    if (code == BATON_EAUTH) {
        node->counters.refused_greeting++;
        pending_log(connection, "peer-not-authenticated", reason);
    }
    if (link) {
        link_ended(connection, stream_was_refused(stream));
    }
    buffer_fini(&connection->input);
    assembly_fini(&connection->incoming);
    free(connection);
    if (id != RAFT_NOBODY && !node->is_closing) {
        meeting_note_progress(node, id);
        if (!connection_is_up(node, id)) {
            connection_report_peer(node, id, false);
        }
        meeting_look_again(node);
    }
    node_release(node);
}

/* ---- Beginnings ------------------------------------------------------------------------------ */

static struct connection *connection_new(struct node *node, struct link *link)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    if (connection) {
        connection->node = node;
        connection->link = link;
        buffer_init(&connection->input, FRAME_BYTES_MAX + 65536);
        parcels_init(&connection->outgoing, NODE_PARCELS_BYTES_MAX);
        assembly_init(&connection->incoming);
    }
    return connection;
}

static struct stream_options options_for(struct connection *connection)
{
    return (struct stream_options){
        .loop = connection->node->loop,
        .callbacks = {.on_open = on_open,
                      .on_data = on_data,
                      .on_drain = on_drain,
                      .on_close = on_close},
        .userdata = connection,
        .queue_bytes_max = NODE_QUEUE_BYTES_MAX,
        .is_prompt = true,
    };
}

struct connection *connection_dial(struct link *link)
{
    struct node *node = link->node;
    struct connection *connection = connection_new(node, link);
    struct stream_options options;
    char host[RAFT_ADDRESS_MAX];
    int port;

    if (!connection ||
        raft_options_parse_address(link_where(link), host, sizeof(host), &port, NULL) != BATON_OK) {
        free(connection);
        return NULL;
    }
    options = options_for(connection);
    options.tls = node->tls;
    options.peer_name = tls_proves_names(node->tls) ? link->name : NULL;
    options.turn = link->misses / LINK_PLACES_MAX; /* each place in turn, by each address */
    if (stream_connect(&connection->stream, &options, host, port, NULL) != BATON_OK) {
        free(connection);
        return NULL;
    }
    node->open_handles++;
    return connection;
}

/* Inserts into the list of accepted connections: newest first. */
static void list(struct connection *connection)
{
    struct node *node = connection->node;

    connection->prev = NULL;
    connection->next = node->accepted;
    if (node->accepted) {
        node->accepted->prev = connection;
    }
    node->accepted = connection;
}

void connection_give_up(struct connection *connection)
{
    connection->link = NULL;
    connection->is_open = false;
    list(connection);
    stream_close(connection->stream);
}

static void on_accept(int fd, void *userdata)
{
    struct node *node = userdata;
    struct connection *connection = connection_new(node, NULL);
    struct stream_options options;

    if (!connection) {
        (void)close(fd);
        return;
    }
    options = options_for(connection);
    list(connection);
    node->open_handles++;
    if (stream_accept(&connection->stream, &options, fd, false, NULL) != BATON_OK) {
        node->accepted = connection->next;
        if (connection->next) {
            connection->next->prev = NULL;
        }
        node->open_handles--;
        free(connection);
    } else {
        pending_begin(connection);
    }
}

static void on_listener_closed(void *userdata)
{
    node_release(userdata);
}

static int refused_to_listen(const struct node *node, int result, struct baton_error *reterr)
{
    return error_set(reterr, result == UV_EADDRINUSE ? BATON_EBUSY : BATON_EIO,
                     "listening on %s:%d: %s; %s", node->options.host, node->options.port,
                     uv_strerror(result),
                     result == UV_EADDRINUSE ? "another process has this port: end it, or give "
                                               "another port"
                                             : "it must be an address of this machine, and a "
                                               "port that this user may take");
}

int connection_may_listen(const struct node *node, struct baton_error *reterr)
{
    struct sockaddr_storage address;
    const int on = 1;
    int result = 0;
    int fd;

    if (!raft_options_listen_address(&node->options, &address)) {
        return BATON_OK; /* connection_listen() says it */
    }
    fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
            result = uv_translate_sys_error(errno);
        }
        (void)close(fd);
    }
    return result == 0 ? BATON_OK : refused_to_listen(node, result, reterr);
}

int connection_listen(struct node *node, struct baton_error *reterr)
{
    const struct listener_options options = {.loop = node->loop,
                                             .logger = node->logger,
                                             .backlog = 128,
                                             .on_connection = on_accept,
                                             .on_closed = on_listener_closed,
                                             .userdata = node};
    struct sockaddr_storage address;
    int result;

    if (!raft_options_listen_address(&node->options, &address)) {
        return error_set(reterr, BATON_EINVAL,
                         "listening: no numeric address"); /* checked before */
    }
    result = listener_open_tcp(&node->listener, &options, (const struct sockaddr *)&address);
    if (result != 0) {
        return refused_to_listen(node, result, reterr);
    }
    node->open_handles++;
    stream_hurry(listener_fd(node->listener));
    datagram_listen(node, (const struct sockaddr *)&address);
    return BATON_OK;
}

void connection_close_accepted(struct node *node)
{
    for (struct connection *accepted = node->accepted; accepted; accepted = accepted->next) {
        stream_close(accepted->stream);
    }
}
