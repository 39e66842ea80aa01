/* Requests of HTTP and echoes of WebSockets a second: src/web beside libwebsockets and
 * libmicrohttpd, as far as those are installed.
 *
 *   baton-bench-web [SECONDS [ROUNDS]]      of each measurement; 1 and 5
 *
 * Each server runs in a process of its own, on one thread. The client is one epoll loop on plain
 * sockets; each of its connections sends the next request once the answer to the last one is whole.
 * All servers are measured in turns, round by round, so that other load meets all of them. The
 * figures are medians: answers a second, and microseconds of CPU that the server spent on an
 * answer, which depend less on the machine's other load.
 */
#include "servers.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, HEAD_MAX = 2048, ANSWER_MAX = ECHO_MAX + HEAD_MAX, DEADLINE_MS = 10000 };

struct server {
    const char *name;
    void (*serve)(int port_fd);
    bool has_sockets;
    pid_t pid;
    int port;
};

struct load {
    const char *name;
    unsigned lines;
    unsigned idle;     /* further connections, on which nothing happens */
    size_t echo_bytes; /* 0: GET / */
};

struct line {
    int fd;
    size_t left; /* of the answer */
};

struct request {
    const void *data;
    size_t bytes, answer_bytes;
};

struct figures {
    double per_s, cpu_us;
};

char bench_page[PAGE_BYTES];

static struct server servers[] = {
    {.name = "src/web", .serve = serve_baton, .has_sockets = true},
#ifdef HAVE_LIBWEBSOCKETS
    {.name = "libwebsockets", .serve = serve_libwebsockets, .has_sockets = true},
#endif
#ifdef HAVE_LIBMICROHTTPD
    {.name = "libmicrohttpd", .serve = serve_libmicrohttpd},
#endif
};

enum { SERVERS = sizeof(servers) / sizeof(servers[0]) };

static const struct load loads[] = {
    {"GET, 1 connection", 1, 0, 0},
    {"GET, 64 connections", 64, 0, 0},
    {"GET, 1 connection beside 800 idle", 1, 800, 0},
    {"echo of 128 bytes, 1 connection", 1, 0, 128},
    {"echo of 128 bytes, 64 connections", 64, 0, 128},
    {"echo of 128 bytes, 1 beside 800 idle", 1, 800, 128},
    {"echo of 16 KiB, 64 connections", 64, 0, 16384},
};

enum { LOADS = sizeof(loads) / sizeof(loads[0]) };

_Noreturn static void fail(const char *what)
{
    (void)fprintf(stderr, "baton-bench-web: %s: %s\n", what, strerror(errno));
    exit(1);
}

void report_port(int port_fd, int port)
{
    if (write(port_fd, &port, sizeof(port)) != sizeof(port)) {
        fail("report the port");
    }
    (void)close(port_fd);
}

/* The server's process ends with this one, however this one ends. */
static void start(struct server *server)
{
    pid_t parent = getpid();
    int ends[2];

    if (pipe(ends) != 0 || (server->pid = fork()) < 0) {
        fail("start a server");
    }
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            (void)close(ends[0]);
            server->serve(ends[1]);
        }
        _exit(1);
    }
    (void)close(ends[1]);
    if (read(ends[0], &server->port, sizeof(server->port)) != sizeof(server->port)) {
        fail(server->name);
    }
    (void)close(ends[0]);
}

/* ---- The client ------------------------------------------------------------------------------ */

static const char get[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
static const char upgrade[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

static int dial(const struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        fail(server->name);
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return fd;
}

static void say(int fd, const void *data, size_t bytes)
{
    if (send(fd, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) {
        fail("send"); /* one request is on its way: the system takes it whole */
    }
}

/* Reads to the end of a head; returns its bytes. */
static size_t hear_head(int fd, char head[static HEAD_MAX])
{
    size_t bytes = 0;

    while (bytes < 4 || memcmp(head + bytes - 4, "\r\n\r\n", 4) != 0) {
        if (bytes + 1 == HEAD_MAX || read(fd, head + bytes, 1) != 1) {
            fail("read the head of an answer");
        }
        bytes++;
    }
    head[bytes] = '\0';
    return bytes;
}

static void hear(int fd, char *ret, size_t bytes)
{
    if (recv(fd, ret, bytes, MSG_WAITALL) != (ssize_t)bytes) {
        fail("read an answer");
    }
}

/* A text, masked with zeros, as a client sends it; returns its bytes. */
static size_t make_frame(char ret[static ANSWER_MAX], size_t bytes)
{
    size_t head = bytes < 126 ? 2 : 4;

    ret[0] = (char)0x81;
    ret[1] = (char)(0x80 | (bytes < 126 ? bytes : 126));
    if (head == 4) {
        ret[2] = (char)(bytes >> 8);
        ret[3] = (char)bytes;
    }
    memset(ret + head, 0, 4);
    memset(ret + head + 4, 'e', bytes);
    return head + 4 + bytes;
}

/* One answer, judged; returns its bytes, which are those of each that follows. */
static size_t judge(const struct server *server, int fd, const struct load *load)
{
    char answer[ANSWER_MAX];
    size_t head = load->echo_bytes < 126 ? 2 : 4;

    if (load->echo_bytes == 0) {
        say(fd, get, sizeof(get) - 1);
        head = hear_head(fd, answer);
        hear(fd, answer + head, PAGE_BYTES);
        if (strncmp(answer, "HTTP/1.1 200 ", 13) == 0 &&
            memcmp(answer + head, bench_page, PAGE_BYTES) == 0) {
            return head + PAGE_BYTES;
        }
    } else {
        char frame[ANSWER_MAX];
        size_t bytes = make_frame(frame, load->echo_bytes);
        say(fd, frame, bytes);
        hear(fd, answer, head + load->echo_bytes);
        if (memcmp(answer + head, frame + head + 4, load->echo_bytes) == 0) {
            return head + load->echo_bytes;
        }
    }
    errno = EPROTO;
    fail(server->name);
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now) != 0) {
        fail("read a clock");
    }
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Takes what came on a line: 1 if its answer is whole. */
static unsigned take(struct line *line)
{
    static char room[ANSWER_MAX];
    ssize_t count = recv(line->fd, room, sizeof(room), 0);

    if (count <= 0 || (size_t)count > line->left) {
        errno = count < 0 ? errno : count == 0 ? ECONNRESET : EMSGSIZE;
        fail("read an answer");
    }
    line->left -= (size_t)count;
    return line->left == 0;
}

/* Sends a request on each connection, and the next one after each answer until the time is over;
 * returns the answers. No answer is left on its way: a server may be busy with a connection that
 * was cut off. */
static uint64_t drive(int poll_fd, struct line *lines, unsigned count,
                      const struct request *request, double end)
{
    struct epoll_event events[CLIENTS_MAX];
    unsigned waiting = count;
    uint64_t answers = 0;

    for (unsigned i = 0; i < count; i++) {
        say(lines[i].fd, request->data, request->bytes);
    }
    while (waiting > 0) {
        int ready = epoll_wait(poll_fd, events, CLIENTS_MAX, DEADLINE_MS);
        bool is_over = seconds_of(CLOCK_MONOTONIC) >= end;
        if (ready <= 0) {
            fail("wait for an answer");
        }
        for (int i = 0; i < ready; i++) {
            struct line *line = events[i].data.ptr;
            if (!take(line)) {
                continue;
            }
            answers++;
            line->left = request->answer_bytes;
            if (is_over) {
                waiting--;
            } else {
                say(line->fd, request->data, request->bytes);
            }
        }
    }
    return answers;
}

/* A connection on which one answer was judged. */
static void prepare(const struct server *server, const struct load *load, struct line *line,
                    struct request *request)
{
    char head[HEAD_MAX];

    line->fd = dial(server);
    if (load->echo_bytes > 0) {
        say(line->fd, upgrade, sizeof(upgrade) - 1);
        (void)hear_head(line->fd, head);
    }
    request->answer_bytes = judge(server, line->fd, load);
    line->left = request->answer_bytes;
}

static struct figures measure(const struct server *server, const struct load *load, double seconds)
{
    struct line lines[CLIENTS_MAX];
    char frame[ANSWER_MAX];
    bool is_echo = load->echo_bytes > 0;
    struct request request = {.data = is_echo ? frame : get,
                              .bytes =
                                  is_echo ? make_frame(frame, load->echo_bytes) : sizeof(get) - 1};
    int poll_fd = epoll_create1(EPOLL_CLOEXEC);
    clockid_t cpu;
    double cpu_s, begin;
    uint64_t answers;

    for (unsigned i = 0; i < load->lines + load->idle; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lines[i]};
        prepare(server, load, &lines[i], &request);
        (void)epoll_ctl(poll_fd, EPOLL_CTL_ADD, lines[i].fd, &event);
    }
    if (clock_getcpuclockid(server->pid, &cpu) != 0) {
        fail(server->name);
    }
    cpu_s = seconds_of(cpu);
    begin = seconds_of(CLOCK_MONOTONIC);
    answers = drive(poll_fd, lines, load->lines, &request, begin + seconds);
    begin = seconds_of(CLOCK_MONOTONIC) - begin;
    cpu_s = seconds_of(cpu) - cpu_s;
    for (unsigned i = 0; i < load->lines + load->idle; i++) {
        (void)close(lines[i].fd);
    }
    (void)close(poll_fd);
    return (struct figures){(double)answers / begin, cpu_s * 1e6 / (double)answers};
}

/* ---- The table ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static void compare_servers(const struct load *load, double seconds, unsigned rounds)
{
    static double per_s[SERVERS][ROUNDS_MAX], cpu_us[SERVERS][ROUNDS_MAX];
    struct figures ours = {0};

    for (unsigned round = 0; round < rounds; round++) {
        for (size_t i = 0; i < SERVERS; i++) {
            if (load->echo_bytes == 0 || servers[i].has_sockets) {
                struct figures figures = measure(&servers[i], load, seconds);
                per_s[i][round] = figures.per_s;
                cpu_us[i][round] = figures.cpu_us;
            }
        }
    }
    for (size_t i = 0; i < SERVERS; i++) {
        struct figures figures;
        if (load->echo_bytes > 0 && !servers[i].has_sockets) {
            continue;
        }
        figures = (struct figures){median(per_s[i], rounds), median(cpu_us[i], rounds)};
        if (i == 0) {
            ours = figures;
        }
        (void)printf("%-36s  %-13s  %9.0f  %6.2f x  %7.2f  %6.2f x\n", load->name, servers[i].name,
                     figures.per_s, ours.per_s / figures.per_s, figures.cpu_us,
                     figures.cpu_us / ours.cpu_us);
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;

    if (argc > 3 || !(seconds > 0) || rounds == 0 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: baton-bench-web [SECONDS [ROUNDS, at most %d]]\n",
                      ROUNDS_MAX);
        return 64;
    }
    memset(bench_page, 'p', sizeof(bench_page));
    for (size_t i = 0; i < SERVERS; i++) {
        start(&servers[i]);
    }
    (void)printf("%-36s  %-13s  %9s  %8s  %7s  %8s\n", "load", "server", "answers/s", "ours/its",
                 "CPU us", "its/ours");
    for (size_t i = 0; i < LOADS; i++) {
        compare_servers(&loads[i], seconds, rounds);
    }
    return 0; /* the servers end with this process */
}
