#include "server.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 12 };

struct start {
    char *argv[ARGUMENTS_MAX + 2]; /* with the script's path, and a NULL */
    int input, output;
};

static int run_script(void *userdata)
{
    const struct start *start = userdata;

    if (dup2(start->input, STDIN_FILENO) >= 0 && dup2(start->output, STDOUT_FILENO) >= 0) {
        (void)execv(start->argv[0], start->argv);
    }
    return EXIT_FAILURE;
}

static void hear(struct server *server)
{
    ssize_t got;

    while ((got = read(server->output, server->said + server->said_bytes,
                       sizeof(server->said) - 1 - server->said_bytes)) > 0) {
        server->said_bytes += (size_t)got;
    }
    server->said[server->said_bytes] = '\0';
}

void server_start(struct server *server, const char *script, ...)
{
    char path[512];
    int input[2], output[2];
    struct start start = {.argv = {path}};
    va_list arguments;

    memset(server, 0, sizeof(*server));
    (void)snprintf(path, sizeof(path), "%s/%s", BATON_DETECTOR_SCRIPTS, script);
    va_start(arguments, script);
    for (int i = 1; i <= ARGUMENTS_MAX && start.argv[i - 1] != NULL; i++) {
        start.argv[i] = va_arg(arguments, char *);
    }
    va_end(arguments);
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    start.input = input[0];
    start.output = output[1];
    server->pid = process_fork(run_script, &start);
    (void)close(input[0]);
    (void)close(output[1]);
    server->input = input[1];
    server->output = output[0];
    assert_int_equal(fcntl(server->output, F_SETFL, O_NONBLOCK), 0);
    while (strchr(server->said, '\n') == NULL) {
        process_wait_readable(server->output);
        hear(server);
        assert_true(process_lives(server->pid));
    }
    assert_int_equal(strncmp(server->said, "ready ", 6), 0);
    server->port = (int)strtol(server->said + 6, NULL, 10);
}

void server_end(struct server *server)
{
    if (server->pid == 0) {
        return;
    }
    process_end(server->pid);
    (void)close(server->input);
    (void)close(server->output);
    server->pid = 0;
}

unsigned server_count(struct server *server, const char *line)
{
    size_t bytes = strlen(line);
    unsigned count = 0;

    hear(server);
    for (const char *at = server->said; (at = strstr(at, line)) != NULL; at += bytes) {
        count += (at == server->said || at[-1] == '\n') && at[bytes] == '\n';
    }
    return count;
}
