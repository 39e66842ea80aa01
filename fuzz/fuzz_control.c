/* A client of the control socket: it sends the bytes in two pieces and hangs up. Each request gets
 * one reply, which is JSON. */
#include "net/control.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uv_loop_t loop;
static struct control_server *server;
static bool has_asked;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* As the control socket of a member refuses what it does not know. */
static void on_request(void *userdata, uint64_t client, const json_t *request)
{
    const char *what = json_string_value(json_object_get(request, "do"));
    struct baton_error error;
    (void)userdata;

    has_asked = true;
    (void)error_set(&error, BATON_EINVAL, "'%s': no such request", what ? what : "");
    control_server_answer(server, client, json_pack("{s:b,s:s}", "ok", 0, "error", error.message));
}

static void clean_up(void)
{
    (void)unlink(address.sun_path);
}

static void begin(void)
{
    expect(uv_loop_init(&loop) == 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/baton-fuzz-%d.sock",
                   (int)getpid());
    (void)atexit(clean_up);
    expect(control_server_open(&server, &loop, address.sun_path, NULL, on_request, NULL, NULL) ==
           0);
}

static void send_piece(int fd, const uint8_t *data, size_t bytes)
{
    (void)send(fd, data, bytes, MSG_NOSIGNAL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char reply[4096];
    size_t first = bytes > 0 ? data[0] % bytes : 0, used = 0;
    ssize_t count;
    int fd;

    if (!server) {
        begin();
    }
    has_asked = false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    send_piece(fd, data, first);
    send_piece(fd, data + first, bytes - first);
    (void)shutdown(fd, SHUT_WR);
    while ((count = recv(fd, reply + used, sizeof(reply) - used, MSG_DONTWAIT)) != 0) {
        used += count > 0 ? (size_t)count : 0;
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    expect(used > 0 || !has_asked);
    if (used > 0) {
        json_t *json = json_loadb(reply, used, 0, NULL);
        expect(json_is_object(json) && reply[used - 1] == '\n');
        json_decref(json);
    }
    close(fd);
    return 0;
}
