#include "net/control.h"

#include "base/buffer.h"
#include "net/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct client {
    uv_pipe_t pipe;
    struct control_server *server;
    uint64_t id;
    struct buffer line;
    bool is_subscribed;
    bool has_asked;
    struct client *next;
};

struct control_server {
    uv_pipe_t pipe;
    control_request_cb on_request;
    void *userdata;
    char *path;
    uint64_t last_id;
    size_t client_count;
    struct client *clients;
    bool is_closing;
};

struct line_write {
    uv_write_t request;
    bool is_last;
    char text[];
};

static void free_if_done(struct control_server *server)
{
    if (server->is_closing && server->client_count == 0 && !server->pipe.data) {
        free(server->path);
        free(server);
    }
}

static void on_client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    struct control_server *server = client->server;
    buffer_fini(&client->line);
    free(client);
    server->client_count--;
    free_if_done(server);
}

static void drop_client(struct client *client)
{
    if (uv_is_closing((uv_handle_t *)&client->pipe)) {
        return;
    }
    for (struct client **at = &client->server->clients; *at; at = &(*at)->next) {
        if (*at == client) {
            *at = client->next;
            break;
        }
    }
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
}

static struct client *find_client(struct control_server *server, uint64_t id)
{
    struct client *client = server->clients;
    while (client && client->id != id) {
        client = client->next;
    }
    return client;
}

static void on_sent(uv_write_t *request, int status)
{
    struct line_write *write = request->data;
    struct client *client = request->handle->data;
    if (write->is_last || status < 0) {
        drop_client(client);
    }
    free(write);
}

static void send_line(struct client *client, const json_t *json, bool is_last)
{
    size_t bytes = json_dumpb(json, NULL, 0, JSON_COMPACT);
    struct line_write *write = malloc(sizeof(*write) + bytes + 1);
    if (!write || bytes == 0 || client->pipe.write_queue_size > CONTROL_QUEUE_MAX) {
        free(write);
        drop_client(client);
        return;
    }
    (void)json_dumpb(json, write->text, bytes, JSON_COMPACT);
    write->text[bytes] = '\n';
    write->is_last = is_last;
    write->request.data = write;
    uv_buf_t piece = uv_buf_init(write->text, (unsigned)bytes + 1);
    if (uv_write(&write->request, (uv_stream_t *)&client->pipe, &piece, 1, on_sent) != 0) {
        free(write);
        drop_client(client);
    }
}

static void refuse(struct client *client, const char *text)
{
    json_t *answer = json_pack("{s:b,s:i,s:s}", "ok", 0, "code", BATON_EINVAL, "error", text);
    if (answer) {
        send_line(client, answer, true);
        json_decref(answer);
    } else {
        drop_client(client);
    }
}

static void take_line(struct client *client, size_t bytes)
{
    json_t *request =
        json_loadb((const char *)client->line.data, bytes, JSON_REJECT_DUPLICATES, NULL);
    client->has_asked = true;
    if (json_is_object(request)) {
        client->server->on_request(client->server->userdata, client->id, request);
    } else {
        refuse(client, "the request is not a JSON object");
    }
    json_decref(request);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct client *client = handle->data;
    uint8_t *room = buffer_reserve(&client->line, 4096);
    (void)suggested;
    *ret = uv_buf_init((char *)room, room ? 4096 : 0);
}

static void on_bytes(uv_stream_t *stream, ssize_t count, const uv_buf_t *piece)
{
    struct client *client = stream->data;
    (void)piece;
    if (count == UV_ENOBUFS && !client->has_asked) {
        client->has_asked = true;
        (void)uv_read_stop(stream);
        refuse(client, "the request is larger than 64 KiB");
        return;
    }
    if (count < 0) {
        drop_client(client);
        return;
    }
    if (client->has_asked) { /* one request a connection; the rest is not read on */
        return;
    }
    client->line.bytes += (size_t)count;
    const uint8_t *end = memchr(client->line.data, '\n', client->line.bytes);
    if (end) {
        take_line(client, (size_t)(end - client->line.data));
        buffer_clear(&client->line);
    }
}

static bool is_allowed(const uv_pipe_t *pipe)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    int fd = -1;
    if (uv_fileno((const uv_handle_t *)pipe, &fd) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        return false;
    }
    return peer.uid == 0 || peer.uid == geteuid();
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct control_server *server = listener->data;
    struct client *client = status == 0 ? calloc(1, sizeof(*client)) : NULL;
    if (!client || uv_pipe_init(listener->loop, &client->pipe, 0) != 0) {
        free(client);
        listener_done(listener);
        return;
    }
    client->pipe.data = client;
    client->server = server;
    client->id = ++server->last_id;
    buffer_init(&client->line, CONTROL_LINE_MAX);
    client->next = server->clients;
    server->clients = client;
    server->client_count++;
    if (uv_accept(listener, (uv_stream_t *)&client->pipe) != 0 ||
        server->client_count > CONTROL_CLIENTS_MAX || !is_allowed(&client->pipe) ||
        uv_read_start((uv_stream_t *)&client->pipe, on_room, on_bytes) != 0) {
        drop_client(client);
    }
}

/* A socket on which a process still listens is not stale. */
static bool is_listened_on(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int connected = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)address, sizeof(*address));
    bool is_live = connected == 0 || (fd >= 0 && errno == EAGAIN);
    if (fd >= 0) {
        close(fd);
    }
    return is_live;
}

/* Bound by hand, since the mode must be right from the first moment. */
static int bind_socket(const char *path, struct baton_error *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return error_set(reterr, BATON_ETOOBIG,
                         "%s: longer than the %zu bytes that a Unix socket's path may have; "
                         "use a shorter data directory",
                         path, sizeof(address.sun_path) - 1);
    }
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (is_listened_on(&address)) {
        return error_set(reterr, BATON_EBUSY,
                         "%s: a running node listens there; give each node a directory of its own",
                         path);
    }
    (void)unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fchmod(fd, 0600) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(path, 0600) != 0) {
        int code = error_set(reterr, error_from_errno(errno), "control socket %s: %s", path,
                             strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return code;
    }
    return fd;
}

static void on_server_closed(uv_handle_t *handle)
{
    struct control_server *server = handle->data;
    server->pipe.data = NULL;
    free_if_done(server);
}

int control_server_open(struct control_server **ret, uv_loop_t *loop, const char *path,
                        control_request_cb on_request, void *userdata, struct baton_error *reterr)
{
    struct control_server *server = calloc(1, sizeof(*server));
    char *copy = strdup(path);
    if (!server || !copy || uv_pipe_init(loop, &server->pipe, 0) != 0) {
        free(server);
        free(copy);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    server->path = copy;
    server->on_request = on_request;
    server->userdata = userdata;
    server->pipe.data = server;
    int fd = bind_socket(path, reterr);
    if (fd < 0) {
        control_server_close(server);
        return fd;
    }
    int failed = uv_pipe_open(&server->pipe, fd);
    if (failed == 0) {
        failed = uv_listen((uv_stream_t *)&server->pipe, 16, on_connection);
    }
    if (failed) {
        control_server_close(server);
        return error_set(reterr, BATON_EIO, "control socket %s: %s", path, uv_strerror(failed));
    }
    *ret = server;
    return 0;
}

void control_server_close(struct control_server *server)
{
    if (!server || server->is_closing) {
        return;
    }
    server->is_closing = true;
    if (uv_is_active((uv_handle_t *)&server->pipe)) { /* it listens: the socket is its own */
        (void)unlink(server->path);
    }
    while (server->clients) {
        drop_client(server->clients);
    }
    uv_close((uv_handle_t *)&server->pipe, on_server_closed);
}

void control_server_answer(struct control_server *server, uint64_t id, json_t *answer)
{
    struct client *client = find_client(server, id);
    if (client && answer) {
        send_line(client, answer, true);
    } else if (client) {
        drop_client(client); /* out of memory for the answer: the client must not wait for it */
    }
    json_decref(answer);
}

void control_server_subscribe(struct control_server *server, uint64_t id)
{
    struct client *client = find_client(server, id);
    if (client) {
        client->is_subscribed = true;
    }
}

void control_server_publish(struct control_server *server, const json_t *line)
{
    struct client *next;
    for (struct client *client = server->clients; client; client = next) {
        next = client->next;
        if (client->is_subscribed) {
            send_line(client, line, false);
        }
    }
}
