#include "web/socket_int.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONTROL_MAX = 256 << 10, /* bytes of control frames in a second */
    PONGS_MAX = 64 << 10,    /* bytes that wait, beyond which a ping is not answered */
    PONG_WITHIN_S = 10,
    CLOSE_WITHIN_S = 5,
    REASON_MAX = WEB_CONTROL_MAX - 2,
};

struct web_socket {
    struct web_socket_home home;
    struct web_socket_options options;
    struct web_frames frames;
    uint64_t control_seen; /* bytes of control frames, when this second began */
    unsigned ticks, quiet_s;
    unsigned close_ticks; /* until the connection is closed, whatever the peer does */
    bool is_closing;      /* a close frame is sent */
    bool has_farewell;    /* the peer's has come: it is in `frames` */
    bool is_finished;     /* both are, or what comes has no meaning */
};

/* ---- The handshake --------------------------------------------------------------------------- */

void web_socket_accept(const char *key, char ret[static WEB_KEY_ROOM])
{
    static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char digest[EVP_MAX_MD_SIZE];
    char text[WEB_KEY_ROOM + sizeof(salt)];
    unsigned bytes = 0;

    (void)snprintf(text, sizeof(text), "%s%s", key, salt);
    (void)EVP_Digest(text, strlen(text), digest, &bytes, EVP_sha1(), NULL);
    (void)EVP_EncodeBlock((unsigned char *)ret, digest, (int)bytes);
}

const char *web_socket_answer_fault(const struct web_response *response, const char *accept)
{
    const struct web_head *head = &response->head;
    const char *upgrade = web_header(head, "upgrade");
    const char *shown = web_header(head, "sec-websocket-accept");

    if (upgrade == NULL || strcasecmp(upgrade, "websocket") != 0 ||
        !web_header_lists(head, "connection", "upgrade")) {
        return "the server upgrades to another protocol than WebSocket";
    }
    if (shown == NULL || web_header_count(head, "sec-websocket-accept") != 1 ||
        strcmp(shown, accept) != 0) {
        return "the server's Sec-WebSocket-Accept is not the answer to our key";
    }
    return web_header(head, "sec-websocket-extensions") != NULL ||
                   web_header(head, "sec-websocket-protocol") != NULL
               ? "the server has chosen an extension or a subprotocol that was not offered"
               : NULL;
}

struct web_socket *web_socket_new(const struct web_socket_home *home,
                                  const struct web_socket_options *options)
{
    struct web_socket *socket = calloc(1, sizeof(*socket));

    if (socket != NULL) {
        socket->home = *home;
        socket->options = *options;
        web_frames_init(&socket->frames, !home->is_client, options->message_max);
    }
    return socket;
}

/* ---- Writing --------------------------------------------------------------------------------- */

size_t web_socket_backlog(const struct web_socket *socket)
{
    return stream_backlog(socket->home.stream);
}

uint64_t web_socket_sent(const struct web_socket *socket)
{
    return stream_written(socket->home.stream);
}

uint64_t web_socket_arrived(const struct web_socket *socket)
{
    return stream_arrived(socket->home.stream);
}

bool web_socket_is_overdue(const struct web_socket *socket)
{
    return stream_is_overdue(socket->home.stream);
}

/* Masks are random: nobody who chooses a text may choose the bytes on the wire (RFC 6455, 10.3). */
static bool put(struct web_socket *socket, enum web_opcode opcode, const void *data, size_t bytes)
{
    bool is_client = socket->home.is_client;
    uint8_t small[1024], mask[WEB_MASK_BYTES] = {0}, *frame = small;
    size_t head;
    bool is_written;

    if (is_client && RAND_bytes(mask, sizeof(mask)) != 1) {
        return false;
    }
    if (bytes > sizeof(small) - WEB_FRAME_HEAD_MAX) {
        frame = malloc(bytes + WEB_FRAME_HEAD_MAX);
    }
    if (frame == NULL) {
        return false;
    }
    head = web_frame_head(frame, opcode, bytes, is_client ? mask : NULL);
    if (is_client) {
        web_mask(frame + head, data, bytes, mask, 0);
    } else if (bytes > 0) {
        memcpy(frame + head, data, bytes);
    }
    is_written = stream_write(socket->home.stream, frame, head + bytes) == BATON_OK;
    if (frame != small) {
        free(frame);
    }
    return is_written;
}

bool web_socket_send(struct web_socket *socket, const char *text, size_t bytes)
{
    size_t waiting = web_socket_backlog(socket), room = socket->options.backlog_max;

    if (socket->is_closing || waiting > room || bytes > room - waiting ||
        !put(socket, WEB_OPCODE_TEXT, text, bytes)) {
        return false;
    }
    if (web_socket_backlog(socket) == 0) {
        socket->home.drain_soon(socket->home.userdata);
    }
    return true;
}

/* How much of a reason fits, without half a code point. */
static size_t reason_bytes(const char *reason)
{
    size_t bytes = strnlen(reason, REASON_MAX + 1);

    if (bytes > REASON_MAX) {
        bytes = REASON_MAX;
        while (bytes > 0 && ((unsigned char)reason[bytes] & 0xc0) == 0x80) {
            bytes--;
        }
    }
    return bytes;
}

void web_socket_close(struct web_socket *socket, unsigned code, const char *reason)
{
    uint8_t payload[WEB_CONTROL_MAX] = {(uint8_t)(code >> 8), (uint8_t)code};
    size_t bytes = reason_bytes(reason);

    if (socket->is_closing) {
        return;
    }
    socket->is_closing = true;
    memcpy(payload + 2, reason, bytes);
    (void)put(socket, WEB_OPCODE_CLOSE, payload, code != 0 ? bytes + 2 : 0);
    socket->close_ticks = CLOSE_WITHIN_S * TICKS_PER_S;
}

unsigned web_socket_farewell(const struct web_socket *socket, const char **ret, size_t *ret_bytes)
{
    const struct web_frames *frames = &socket->frames;
    bool has_code = socket->has_farewell && frames->code != 0;

    *ret = (const char *)frames->control;
    *ret_bytes = has_code ? frames->control_bytes : 0;
    return has_code ? frames->code : 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void refuse(struct web_socket *socket, unsigned code, const char *reason)
{
    if (!socket->is_closing) {
        socket->options.callbacks.on_refused(socket->options.userdata, reason);
    }
    web_socket_close(socket, code, reason);
    socket->is_finished = true;
    socket->home.end(socket->home.userdata);
}

static void refuse_frame(struct web_socket *socket)
{
    const struct web_frames *frames = &socket->frames;
    char text[REASON_MAX + 1];

    if (frames->code == WEB_CLOSE_TOO_LARGE) {
        (void)snprintf(text, sizeof(text), "message too large: at most %zu bytes are read",
                       socket->options.message_max);
        refuse(socket, frames->code, text);
    } else {
        refuse(socket, frames->code, frames->reason);
    }
}

/* Both sides have said that they close. */
static void finish(struct web_socket *socket)
{
    socket->has_farewell = true;
    web_socket_close(socket, socket->frames.code, ""); /* unless we began */
    socket->is_finished = true;
    socket->home.end(socket->home.userdata);
}

static void receive_ping(struct web_socket *socket)
{
    if (!socket->is_closing && web_socket_backlog(socket) < PONGS_MAX) {
        (void)put(socket, WEB_OPCODE_PONG, socket->frames.control, socket->frames.control_bytes);
    }
}

static void take(struct web_socket *socket, enum web_frame frame)
{
    const struct web_socket_callbacks *callbacks = &socket->options.callbacks;
    const struct buffer *message = &socket->frames.message;

    switch (frame) {
    case WEB_FRAME_TEXT:
        if (!socket->is_closing) {
            callbacks->on_text(socket->options.userdata,
                               message->data != NULL ? (const char *)message->data : "",
                               message->bytes);
        }
        break;
    case WEB_FRAME_BINARY:
        if (!socket->is_closing) {
            callbacks->on_refused(socket->options.userdata, "a binary message: only text is read");
        }
        break;
    case WEB_FRAME_PING:
        receive_ping(socket);
        break;
    case WEB_FRAME_PONG:
        socket->quiet_s = 0;
        break;
    case WEB_FRAME_CLOSE:
        finish(socket);
        break;
    case WEB_FRAME_REFUSED:
        refuse_frame(socket);
        break;
    case WEB_FRAME_MORE:
    default:
        break;
    }
}

void web_socket_read(struct web_socket *socket, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    while (bytes > 0 && !socket->is_finished) {
        size_t taken;
        enum web_frame frame = web_frames_read(&socket->frames, at, bytes, &taken);
        at += taken;
        bytes -= taken;
        take(socket, frame);
        if (socket->frames.control_total - socket->control_seen > CONTROL_MAX) {
            refuse(socket, WEB_CLOSE_POLICY, "too many control frames");
        }
    }
}

void web_socket_drain(struct web_socket *socket)
{
    if (!socket->is_closing) {
        socket->options.callbacks.on_drain(socket->options.userdata);
    }
}

/* Seconds are counted in ticks, not by a clock: a process that was stopped reads the pongs that
 * came meanwhile before it closes a peer. */
void web_socket_tick(struct web_socket *socket)
{
    unsigned after_s = socket->options.ping_after_s;

    if (socket->close_ticks > 0 && --socket->close_ticks == 0) {
        stream_close(socket->home.stream);
        return;
    }
    if (++socket->ticks % TICKS_PER_S != 0) {
        return;
    }
    socket->control_seen = socket->frames.control_total;
    if (socket->is_closing) {
        return;
    }
    socket->quiet_s++;
    if (socket->quiet_s == after_s) {
        (void)put(socket, WEB_OPCODE_PING, "?", 1);
    } else if (socket->quiet_s > after_s + PONG_WITHIN_S) {
        char reason[REASON_MAX + 1];
        (void)snprintf(reason, sizeof(reason), "the peer answers no ping within %d s",
                       PONG_WITHIN_S);
        web_socket_close(socket, WEB_CLOSE_POLICY, reason);
        socket->close_ticks = 1; /* it will hardly answer that */
    }
}

/* What was read and is not given out yet is dropped: a callback may have closed the connection. */
void web_socket_closing(struct web_socket *socket)
{
    socket->is_closing = true;
    socket->is_finished = true;
    socket->options.callbacks.on_closing(socket->options.userdata);
}

void web_socket_free(struct web_socket *socket)
{
    socket->options.callbacks.on_close(socket->options.userdata);
    web_frames_fini(&socket->frames);
    free(socket);
}
