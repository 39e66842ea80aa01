#include "cli/bench_server.h"

#include "base/clock.h"
#include "cli/cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_WAIT_S = 20, LOOK_AGAIN_MS = 5, EXIT_NOT_FOUND = 127 };

static int port_of(const struct bench_server *server)
{
    return (int)strtol(strchr(server->address, ':') + 1, NULL, 10);
}

static bool answers(const struct bench_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port_of(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char answer[8] = "";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool does = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6 &&
                recv(fd, answer, sizeof(answer) - 1, 0) > 0 && strncmp(answer, "+PONG", 5) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return does;
}

static void become_server(const char *port)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; null >= 0 && fd <= 2; fd++) {
        (void)dup2(null, fd);
    }
    /* The current folder may contain other data: the server must not load or overwrite it. */
    (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save",
                 "", "--dbfilename", "", "--appendonly", "no", (char *)NULL);
    _exit(EXIT_NOT_FOUND);
}

static int wait_for_it(struct bench_server *server, struct baton_error *reterr)
{
    instant end = instant_add(clock_now(), SPAN_S(ANSWER_WAIT_S));
    struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    int status;

    while (instant_before(clock_now(), end)) {
        if (answers(server)) {
            return 0;
        }
        if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
            server->pid = 0;
            return error_set(reterr, BATON_ENOENT,
                             "redis-server ended at once (exit code %d); is it installed?",
                             WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        }
        (void)nanosleep(&pause, NULL);
    }
    return error_set(reterr, BATON_ETIMEDOUT, "redis-server at %s: no answer in %d s",
                     server->address, ANSWER_WAIT_S);
}

int bench_server_start(struct bench_server *server, struct baton_error *reterr)
{
    int code = 0;

    if (!server->address[0]) {
        code = cluster_free_address(server->address, sizeof(server->address), reterr);
    }
    if (code) {
        return code;
    }
    server->pid = fork();
    if (server->pid == 0) {
        become_server(strchr(server->address, ':') + 1);
    }
    if (server->pid < 0) {
        server->pid = 0;
        return error_set(reterr, BATON_EIO, "redis-server: cannot be started");
    }
    return wait_for_it(server, reterr);
}

void bench_server_kill(struct bench_server *server)
{
    if (server->pid > 0) {
        (void)kill(server->pid, SIGKILL);
        (void)waitpid(server->pid, NULL, 0);
        server->pid = 0;
    }
}
