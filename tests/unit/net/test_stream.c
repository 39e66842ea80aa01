/* The stream's queue, and its information about the connection, over real sockets on loopback. */
#include "net/stream.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 77 }; /* this machine lets nobody have a mount namespace */
enum { BULK_BYTES = 32768, BULKS_MAX = 4096, QUEUE_BYTES_MAX = 64 * 1024 * 1024 };

struct world {
    uv_loop_t loop;
    struct stream *stream;
    int listener; /* plain sockets: nobody reads but when the test says so */
    int peer;
    int port;
    bool is_open;
    bool is_closed;
    bool was_refused;
    int code;
};

static void on_open(struct stream *stream, void *userdata)
{
    struct world *world = userdata;
    world->is_open = true;
}

static void on_data(struct stream *stream, const void *data, size_t bytes, void *userdata)
{
}

static void on_close(struct stream *stream, int code, const char *reason, void *userdata)
{
    struct world *world = userdata;
    world->is_closed = true;
    world->code = code;
    world->was_refused = stream_was_refused(stream);
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int small = 4096;

    assert_int_equal(uv_loop_init(&world->loop), 0);
    world->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        setsockopt(world->listener, SOL_SOCKET, SO_RCVBUF, &small, (socklen_t)sizeof(small)), 0);
    assert_int_equal(bind(world->listener, (const struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(world->listener, (struct sockaddr *)&address, &length), 0);
    world->port = ntohs(address.sin_port);
    world->peer = -1;
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    if (world->stream && !world->is_closed) {
        stream_close(world->stream);
    }
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    close(world->listener);
    if (world->peer >= 0) {
        close(world->peer);
    }
    free(world);
    return 0;
}

static void dial_host(struct world *world, const char *host)
{
    struct stream_options options = {
        .loop = &world->loop,
        .callbacks = {.on_open = on_open, .on_data = on_data, .on_close = on_close},
        .userdata = world,
        .queue_bytes_max = QUEUE_BYTES_MAX,
        .is_prompt = true,
    };
    assert_int_equal(stream_connect(&world->stream, &options, host, world->port, NULL), 0);
}

static void dial(struct world *world)
{
    dial_host(world, "127.0.0.1");
}

static void connect_both(struct world *world)
{
    assert_int_equal(listen(world->listener, 1), 0);
    dial(world);
    while (!world->is_open && !world->is_closed) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_true(world->is_open);
    assert_false(stream_is_connecting(world->stream));
    world->peer = accept(world->listener, NULL, NULL);
    assert_true(world->peer >= 0);
}

/* Until the socket takes no more; how many bytes that were. */
static size_t fill(struct world *world)
{
    static uint8_t bulk[BULK_BYTES];
    size_t written = 0;

    memset(bulk, '.', sizeof(bulk));
    for (int i = 0; i < BULKS_MAX && !stream_has_backlog(world->stream); i++) {
        assert_int_equal(stream_write(world->stream, bulk, sizeof(bulk)), 0);
        written += sizeof(bulk);
    }
    assert_true(stream_has_backlog(world->stream));
    return written;
}

/* The peer reads `bytes`, while the stream goes on writing. */
static char *drain(struct world *world, size_t bytes)
{
    char *text = calloc(1, bytes + 1);
    size_t used = 0;

    while (used < bytes) {
        ssize_t count = recv(world->peer, text + used, bytes - used, MSG_DONTWAIT);
        assert_false(world->is_closed);
        assert_int_not_equal(count, 0);
        used += count > 0 ? (size_t)count : 0;
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    return text;
}

static void latest(struct world *world, unsigned kind, const char *text)
{
    assert_int_equal(stream_write_latest(world->stream, kind, text, strlen(text)), 0);
}

static void of_a_kind_only_the_latest_waits(void **state)
{
    struct world *world = *state;
    size_t bulk;
    char *text;

    connect_both(world);
    bulk = fill(world);
    latest(world, 0, "<round 1>");
    latest(world, 1, "<other 1>");
    latest(world, 0, "<round 2>");
    latest(world, 0, "<round 3>");
    text = drain(world, bulk + strlen("<round 3><other 1>"));
    assert_int_equal(strspn(text, "."), bulk); /* nothing is torn, nothing of it is lost */
    assert_string_equal(text + bulk, "<round 3><other 1>");
    free(text);
    assert_false(stream_has_backlog(world->stream));
}

static void nothing_is_replaced_that_the_socket_takes(void **state)
{
    struct world *world = *state;
    char *text;

    connect_both(world);
    latest(world, 0, "<1>");
    latest(world, 0, "<2>");
    text = drain(world, 6);
    assert_string_equal(text, "<1><2>");
    free(text);
}

static void what_is_written_otherwise_is_never_replaced(void **state)
{
    struct world *world = *state;
    char longer[STREAM_LATEST_BYTES + 2];
    size_t bulk;
    char *text;

    connect_both(world);
    bulk = fill(world);
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(stream_write(world->stream, "<a>", 3), 0);
    assert_int_equal(stream_write(world->stream, "<a>", 3), 0);
    latest(world, 0, longer); /* does not fit among those that are kept back */
    latest(world, 0, longer);
    text = drain(world, bulk + 6 + 2 * strlen(longer));
    assert_int_equal(strspn(text, "."), bulk);
    assert_memory_equal(text + bulk, "<a><a>", 6);
    assert_int_equal(strspn(text + bulk + 6, "x"), 2 * strlen(longer));
    free(text);
}

static void the_latest_does_not_wait_for_a_queue_to_be_empty(void **state)
{
    static uint8_t bulk[BULK_BYTES];
    struct world *world = *state;
    bool has_come = false;

    connect_both(world);
    (void)fill(world);
    latest(world, 0, "<round>");
    memset(bulk, '.', sizeof(bulk));
    for (int i = 0; i < 32; i++) {
        assert_int_equal(stream_write(world->stream, bulk, sizeof(bulk)), 0);
    }
    for (int i = 0; i < BULKS_MAX && !has_come; i++) {
        char *text;
        assert_int_equal(stream_write(world->stream, bulk, sizeof(bulk)), 0);
        assert_true(stream_has_backlog(world->stream)); /* more comes than goes */
        text = drain(world, sizeof(bulk));
        has_come = strspn(text, ".") < sizeof(bulk);
        free(text);
    }
    assert_true(has_come);
}

static void a_peer_that_does_not_read_is_not_a_line_that_loses(void **state)
{
    struct world *world = *state;

    connect_both(world);
    (void)fill(world);
    for (int i = 0; i < 10; i++) {
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_false(stream_is_stuck(world->stream));
}

/* Where the kernel can: TCP_RTO_MIN_US of Linux 6.15. */
static void a_lost_packet_is_repeated_sooner_than_by_default(void **state)
{
    struct world *world = *state;
    int before_us = 0, us = 0;
    socklen_t bytes = sizeof(us);

    if (getsockopt(world->listener, IPPROTO_TCP, 45, &before_us, &bytes) != 0) {
        skip();
    }
    connect_both(world);
    assert_int_equal(getsockopt(stream_fd(world->stream), IPPROTO_TCP, 45, &us, &bytes), 0);
    assert_true(us > 0 && us < before_us);
}

/* It bounds what the kernel retransmits, and how often. */
static void a_peer_that_acknowledges_nothing_is_given_up_within_a_minute(void **state)
{
    struct world *world = *state;
    int ms = 0;
    socklen_t bytes = sizeof(ms);

    connect_both(world);
    assert_int_equal(
        getsockopt(stream_fd(world->stream), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &bytes), 0);
    assert_in_range(ms, 1, 60000);
}

static void a_refusal_is_told_from_other_failures(void **state)
{
    struct world *world = *state;

    dial(world); /* bound, and nobody listens */
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_true(world->is_closed);
    assert_int_equal(world->code, BATON_EUNAVAILABLE);
    assert_true(world->was_refused);
}

static void out_of_descriptors_is_no_refusal(void **state)
{
    struct world *world = *state;
    struct rlimit before, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    dial(world);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_true(world->is_closed);
    assert_int_equal(world->code, BATON_EUNAVAILABLE);
    assert_false(world->was_refused);
}

/* In a mount namespace with another /etc/hosts. */
static int dial_two_addresses(void *userdata)
{
    static const char hosts[] = "::1 two.test\n127.0.0.1 two.test\n";
    struct world *world = userdata;
    char path[] = "/tmp/baton-hosts-XXXXXX";
    int fd = mkstemp(path);
    int namespaces = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    bool is_ready = fd >= 0 && write(fd, hosts, sizeof(hosts) - 1) > 0 && fchmod(fd, 0644) == 0 &&
                    unshare(namespaces) == 0 &&
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                    mount(path, "/etc/hosts", NULL, MS_BIND, NULL) == 0;

    (void)unlink(path);
    (void)close(fd);
    if (!is_ready) {
        return CANNOT;
    }
    dial_host(world, "two.test");
    while (!world->is_open && !world->is_closed) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    return world->is_open ? 0 : 1;
}

/* Nobody listens at the first one. */
static void the_next_address_of_a_name_is_tried(void **state)
{
    struct world *world = *state;
    int status;

    assert_int_equal(listen(world->listener, 1), 0);
    status = process_wait(process_fork(dial_two_addresses, world));
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* At neither address: a failure, and a refusal by both. */
static void a_name_without_a_listener_is_refused(void **state)
{
    struct world *world = *state;

    dial_host(world, "localhost");
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_true(world->is_closed);
    assert_int_equal(world->code, BATON_EUNAVAILABLE);
    assert_true(world->was_refused);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(of_a_kind_only_the_latest_waits),
        TEST(nothing_is_replaced_that_the_socket_takes),
        TEST(what_is_written_otherwise_is_never_replaced),
        TEST(the_latest_does_not_wait_for_a_queue_to_be_empty),
        TEST(a_peer_that_does_not_read_is_not_a_line_that_loses),
        TEST(a_lost_packet_is_repeated_sooner_than_by_default),
        TEST(a_peer_that_acknowledges_nothing_is_given_up_within_a_minute),
        TEST(a_refusal_is_told_from_other_failures),
        TEST(out_of_descriptors_is_no_refusal),
        TEST(the_next_address_of_a_name_is_tried),
        TEST(a_name_without_a_listener_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
