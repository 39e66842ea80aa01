#include "net/control.h"

#include "base/buffer.h"
#include "base/json_load.h"
#include "net/listener.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
    uv_loop_t *loop;
    struct listener *listener;
    control_request_cb on_request;
    void *userdata;
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
    if (server->is_closing && server->client_count == 0 && !server->listener) {
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
        json_load_bytes((const char *)client->line.data, bytes, JSON_REJECT_DUPLICATES, NULL);
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

static bool is_allowed(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static void on_connection(int fd, void *userdata)
{
    struct control_server *server = userdata;
    struct client *client = is_allowed(fd) ? calloc(1, sizeof(*client)) : NULL;

    if (!client || uv_pipe_init(server->loop, &client->pipe, 0) != 0) {
        free(client);
        (void)close(fd);
        return;
    }
    client->pipe.data = client;
    client->server = server;
    client->id = ++server->last_id;
    buffer_init(&client->line, CONTROL_LINE_MAX);
    client->next = server->clients;
    server->clients = client;
    server->client_count++;
    if (uv_pipe_open(&client->pipe, fd) != 0) {
        (void)close(fd);
        drop_client(client);
    } else if (server->client_count > CONTROL_CLIENTS_MAX ||
               uv_read_start((uv_stream_t *)&client->pipe, on_room, on_bytes) != 0) {
        drop_client(client);
    }
}

static void on_listener_closed(void *userdata)
{
    struct control_server *server = userdata;

    server->listener = NULL;
    free_if_done(server);
}

int control_server_open(struct control_server **ret, uv_loop_t *loop, const char *path,
                        struct logger *logger, control_request_cb on_request, void *userdata,
                        struct baton_error *reterr)
{
    const struct listener_place place = {
        path, 0600, (gid_t)-1, "; give each node a data directory of its own, with a short path"};
    struct control_server *server = calloc(1, sizeof(*server));
    const struct listener_options options = {.loop = loop,
                                             .logger = logger,
                                             .backlog = 16,
                                             .on_connection = on_connection,
                                             .on_closed = on_listener_closed,
                                             .userdata = server};
    int code = server ? listener_open_unix(&server->listener, &options, &place, reterr)
                      : error_set(reterr, BATON_ENOMEM, "out of memory");

    if (code) {
        free(server);
        return code;
    }
    server->loop = loop;
    server->on_request = on_request;
    server->userdata = userdata;
    *ret = server;
    return 0;
}

void control_server_close(struct control_server *server)
{
    if (!server || server->is_closing) {
        return;
    }
    server->is_closing = true;
    listener_end(server->listener);
    while (server->clients) {
        drop_client(server->clients);
    }
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
