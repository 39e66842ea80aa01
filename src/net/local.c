#include "net/local.h"

#include "base/json_load.h"
#include "base/json_text.h"
#include "net/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TURN_NS = 100000 };
enum { RECEIVED_MAX = 2 * LOCAL_LINE_MAX + (1 << 17) }; /* a line, its raw bytes, and a read */

struct local {
    struct stream *stream;
    struct local_callbacks callbacks;
    void *userdata;
    struct buffer received; /* of it, a message that is not all there is kept as text alone */
    size_t searched;        /* bytes of the message that hold no newline */
    size_t awaited;         /* bytes of the message, with those behind its line; 0: not known yet */
    bool is_accepted;       /* the peer is a client */
    bool is_raw;            /* the peer reads bytes behind a line */
    bool is_waiting;        /* for its next turn */
    bool is_closing;
    int fault; /* why it was closed here; 0: it was not for a fault of the peer's */
};

/* ---- Names of errors ------------------------------------------------------------------------- */

#define CODE_ROW(symbol, number, text) {(number), #symbol},
static const struct {
    int code;
    const char *name; /* with BATON_ */
} codes[] = {BATON_ERRORS(CODE_ROW)};

enum { CODES = sizeof(codes) / sizeof(codes[0]), PREFIX_BYTES = sizeof("BATON_") - 1 };

const char *local_code_name(int code)
{
    for (size_t i = 0; i < CODES; i++) {
        if (codes[i].code == code) {
            return codes[i].name + PREFIX_BYTES;
        }
    }
    return "EIO";
}

int local_code(const char *name)
{
    for (size_t i = 0; i < CODES; i++) {
        if (strcmp(codes[i].name + PREFIX_BYTES, name) == 0) {
            return codes[i].code;
        }
    }
    return BATON_EPROTO;
}

/* ---- A connection ---------------------------------------------------------------------------- */

void local_close(struct local *local)
{
    if (!local->is_closing) {
        local->is_closing = true;
        stream_close(local->stream);
    }
}

/* Why a message could not be built. */
static int fault_of(const json_t *message)
{
    return json_dumpb(message, NULL, 0, JSON_COMPACT) > LOCAL_LINE_MAX ? BATON_ETOOBIG
                                                                       : BATON_ENOMEM;
}

static int write_line(struct local *local, const json_t *message, const struct buffer *raw)
{
    struct buffer line;
    int code;

    buffer_init(&line, LOCAL_LINE_MAX + 1 + raw->bytes);
    json_put_to(&line, message, JSON_COMPACT);
    buffer_put(&line, "\n", 1);
    buffer_put(&line, raw->data, raw->bytes);
    code = line.failed ? fault_of(message) : stream_write(local->stream, line.data, line.bytes);
    buffer_fini(&line);
    return code;
}

int local_send(struct local *local, const json_t *message)
{
    struct buffer raw;
    json_t *rest = NULL;
    int code;

    if (local->is_closing) {
        return BATON_ECLOSED;
    }
    buffer_init(&raw, LOCAL_LINE_MAX);
    if (local->is_raw) {
        rest = local_raw_split(message, &raw);
    }
    code =
        local->is_raw && !rest ? fault_of(message) : write_line(local, rest ? rest : message, &raw);
    json_decref(rest);
    buffer_fini(&raw);
    if (code != BATON_OK) {
        local_close(local);
    }
    return code;
}

void local_send_raw(struct local *local)
{
    local->is_raw = true;
}

size_t local_backlog(const struct local *local)
{
    return local->is_closing ? 0 : stream_backlog(local->stream);
}

bool local_is_drained(const struct local *local)
{
    return !local->is_closing && stream_backlog(local->stream) == 0;
}

/* With a space, which means nothing before a message: a descriptor does not travel alone. */
bool local_pass_pidfd(struct local *local, int pidfd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = ' ';
    struct iovec data = {&byte, sizeof(byte)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space)};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &pidfd, sizeof(pidfd));
    /* With a backlog it would go into the middle of a message. */
    return !local->is_closing && !stream_has_backlog(local->stream) &&
           sendmsg(stream_fd(local->stream), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

int local_fd(const struct local *local)
{
    return stream_fd(local->stream);
}

/* The peer is told what is wrong, and hears no more. */
static void refuse(struct local *local, int code, const char *text)
{
    json_t *reply =
        json_pack("{s:b, s:s, s:s}", "ok", 0, "code", local_code_name(code), "error", text);

    if (reply) {
        (void)local_send(local, reply);
        json_decref(reply);
    }
    local->fault = code;
    local_close(local);
}

/* Learns how many bytes the message has. NULL: it was refused. */
static json_t *parse(struct local *local, const char *line)
{
    if (local->is_accepted && local_values(line, local->searched) > LOCAL_VALUES_MAX) {
        char text[64];
        (void)snprintf(text, sizeof(text), "a request has at most %d values of JSON",
                       LOCAL_VALUES_MAX);
        refuse(local, BATON_ETOOBIG, text);
        return NULL;
    }
    json_t *message =
        json_load_bytes(line, local->searched, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    long raw = json_is_object(message) ? local_raw_bytes(message) : -1;

    if (raw >= 0) {
        local->awaited = local->searched + 1 + (size_t)raw;
        return message;
    }
    refuse(local, BATON_EPROTO,
           json_is_object(message) ? "\"raw\": must be how many bytes follow, at most 2 MiB in all"
                                   : "a message must be one JSON object on one line");
    json_decref(message);
    return NULL;
}

static void hand_on(struct local *local, json_t *message, const char *raw)
{
    if (local_raw_join(message, raw)) {
        local->callbacks.on_message(local, message, local->userdata);
    } else {
        local_close(local); /* no memory */
    }
}

/* Takes a message from `begin` of what came. Returns how many bytes it had; 0: more is to come
 * first. JSON takes up to a hundred times its text, so a message whose raw bytes have not come is
 * parsed again once they have, and not kept. */
static size_t take_next(struct local *local, size_t begin)
{
    const char *text = (const char *)local->received.data + begin;
    size_t bytes = local->received.bytes - begin, taken = 0;
    json_t *message;

    if (local->awaited == 0) {
        const char *end = memchr(text + local->searched, '\n', bytes - local->searched);
        local->searched = end ? (size_t)(end - text) : bytes;
        if (!end || local->searched > LOCAL_LINE_MAX) {
            return 0;
        }
    } else if (bytes < local->awaited) {
        return 0;
    }
    message = parse(local, text);
    if (message && bytes >= local->awaited) {
        const char *raw = text + local->searched + 1;
        taken = local->awaited;
        local->awaited = local->searched = 0;
        hand_on(local, message, raw);
    }
    json_decref(message);
    return taken;
}

static bool has_had_its_turn(const struct local *local, uint64_t began_ns)
{
    return local->callbacks.on_turn && uv_hrtime() - began_ns > TURN_NS;
}

/* Takes the messages that are there, as long as its turn lasts. */
static void take_all(struct local *local)
{
    uint64_t began_ns = uv_hrtime();
    size_t begin = 0, taken = 1;

    while (!local->is_closing && !local->received.failed && taken > 0 && !local->is_waiting) {
        taken = take_next(local, begin);
        begin += taken;
        local->is_waiting = taken > 0 && has_had_its_turn(local, began_ns);
    }
    if (!local->is_closing && (local->received.failed || local->searched > LOCAL_LINE_MAX)) {
        refuse(local, BATON_ETOOBIG, "a message has at most 2 MiB");
    }
    buffer_consume(&local->received, begin);
    if (local->is_waiting && !local->is_closing) {
        stream_pause(local->stream, true);
        local->callbacks.on_turn(local, local->userdata);
    }
}

void local_go_on(struct local *local)
{
    if (local->is_waiting && !local->is_closing) {
        local->is_waiting = false;
        stream_pause(local->stream, false);
        take_all(local);
    }
}

static void on_data(struct stream *stream, const void *data, size_t bytes, void *userdata)
{
    struct local *local = userdata;
    (void)stream;

    buffer_put(&local->received, data, bytes);
    take_all(local);
}

static void on_open(struct stream *stream, void *userdata)
{
    struct local *local = userdata;
    (void)stream;

    if (local->callbacks.on_open) {
        local->callbacks.on_open(local, local->userdata);
    }
}

/* Any other descriptor is closed: only a pidfd can be waited for without surprises. */
static bool is_pidfd(int fd)
{
    char path[64], line[64];
    bool is_found = false;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    file = fopen(path, "re");
    while (file && !is_found && fgets(line, sizeof(line), file)) {
        is_found = strncmp(line, "Pid:", 4) == 0;
    }
    if (file) {
        (void)fclose(file);
    }
    return is_found;
}

static void on_descriptor(struct stream *stream, int fd, void *userdata)
{
    struct local *local = userdata;
    (void)stream;

    if (local->is_closing || !is_pidfd(fd)) {
        (void)close(fd);
    } else {
        local->callbacks.on_pidfd(local, fd, local->userdata);
    }
}

static void on_drain(struct stream *stream, void *userdata)
{
    struct local *local = userdata;
    (void)stream;

    if (!local->is_closing && local->callbacks.on_drain) {
        local->callbacks.on_drain(local, local->userdata);
    }
}

static void on_close(struct stream *stream, int code, const char *reason, void *userdata)
{
    struct local *local = userdata;
    (void)stream;

    local->is_closing = true;
    local->callbacks.on_close(local, local->fault ? local->fault : code, reason, local->userdata);
    buffer_fini(&local->received);
    free(local);
}

static struct local *local_new(struct stream_options *ret_options, uv_loop_t *loop,
                               const struct local_callbacks *callbacks, void *userdata)
{
    struct local *local = calloc(1, sizeof(*local));

    if (local) {
        local->callbacks = *callbacks;
        local->userdata = userdata;
        buffer_init(&local->received, RECEIVED_MAX);
        *ret_options =
            (struct stream_options){.loop = loop,
                                    .callbacks = {on_open, on_data, on_drain, NULL, on_close,
                                                  callbacks->on_pidfd ? on_descriptor : NULL},
                                    .userdata = local,
                                    .queue_bytes_max = LOCAL_QUEUE_MAX};
    }
    return local;
}

int local_connect(struct local **ret, uv_loop_t *loop, const char *path,
                  const struct local_callbacks *callbacks, void *userdata,
                  struct baton_error *reterr)
{
    struct stream_options options;
    struct local *local = local_new(&options, loop, callbacks, userdata);
    int code = local ? stream_connect_unix(&local->stream, &options, path, reterr)
                     : error_set(reterr, BATON_ENOMEM, "out of memory for a connection");

    if (code != BATON_OK) {
        free(local);
        return code;
    }
    *ret = local;
    return BATON_OK;
}

int local_accept(struct local **ret, uv_loop_t *loop, int fd,
                 const struct local_callbacks *callbacks, void *userdata,
                 struct baton_error *reterr)
{
    struct stream_options options;
    struct local *local = local_new(&options, loop, callbacks, userdata);
    int code;

    if (!local) {
        (void)close(fd);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a connection");
    }
    *ret = local;
    local->is_accepted = true;
    code = stream_accept(&local->stream, &options, fd, true, reterr);
    if (code != BATON_OK) {
        free(local);
    }
    return code;
}
