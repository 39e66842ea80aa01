#include "servers.h"

#include "web/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct echo {
    struct web_socket *socket;
};

static void on_text(void *userdata, const char *text, size_t bytes)
{
    const struct echo *echo = userdata;

    (void)web_socket_send(echo->socket, text, bytes);
}

static void on_refused(void *userdata, const char *reason)
{
    (void)userdata;
    (void)reason;
}

static void ignore(void *userdata)
{
    (void)userdata;
}

static void open_socket(struct web_exchange *exchange)
{
    struct echo *echo = calloc(1, sizeof(*echo));
    struct web_socket_options options = {.message_max = ECHO_MAX,
                                         .backlog_max = (size_t)2 * ECHO_MAX,
                                         .ping_after_s = 60,
                                         .callbacks = {.on_text = on_text,
                                                       .on_refused = on_refused,
                                                       .on_drain = ignore,
                                                       .on_closing = ignore,
                                                       .on_close = free},
                                         .userdata = echo};

    if (echo != NULL) {
        echo->socket = web_socket_open(exchange, &options);
    }
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    static const struct web_answer page = {
        .status = 200, .type = "text/plain", .body = bench_page, .bytes = sizeof(bench_page)};

    (void)userdata;
    if (web_exchange_request(exchange)->is_upgrade) {
        open_socket(exchange);
    } else {
        web_answer(exchange, &page);
    }
}

void serve_baton(int port_fd)
{
    uv_loop_t loop;
    struct web_config config = {.loop = &loop,
                                .host = "127.0.0.1",
                                .connections_max = CLIENTS_MAX,
                                .head_within_s = 60,
                                .read_within_s = 60,
                                .head_max = 4096,
                                .answer_max = (size_t)4 * ECHO_MAX,
                                .callbacks = {.on_request = on_request}};
    struct web_server *server;
    struct baton_error error;

    (void)signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&loop) != 0 || web_server_open(&server, &config, &error) != 0) {
        (void)fprintf(stderr, "src/web: cannot listen\n");
        exit(1);
    }
    report_port(port_fd, web_server_port(server));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
}
