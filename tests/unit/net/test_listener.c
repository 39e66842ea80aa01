#include "net/listener.h"

#include "base/log.h"
#include "cmocka_all.h"
#include "lib/accept_fault.h"
#include "lib/await.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    uv_loop_t loop;
    struct logger *logger;
    int log;
    struct listener *listener; /* NULL: ended */
    unsigned count;            /* of connections */
    bool ends_at_once;         /* at its first connection */
    bool is_closed;
    char dir[64];
    struct sockaddr_un address;
};

static void end(struct world *world)
{
    listener_end(world->listener);
    world->listener = NULL;
}

static void on_connection(int fd, void *userdata)
{
    struct world *world = userdata;

    world->count++;
    (void)close(fd);
    if (world->ends_at_once) {
        end(world);
    }
}

static void on_closed(void *userdata)
{
    ((struct world *)userdata)->is_closed = true;
}

static struct listener_options options_of(struct world *world)
{
    return (struct listener_options){.loop = &world->loop,
                                     .logger = world->logger,
                                     .backlog = 128,
                                     .on_connection = on_connection,
                                     .on_closed = on_closed,
                                     .userdata = world};
}

static int open_unix(struct world *world, struct listener **ret)
{
    const struct listener_options options = options_of(world);
    const struct listener_place place = {
        .path = world->address.sun_path, .mode = 0640, .group = (gid_t)-1};

    return listener_open_unix(ret, &options, &place, NULL);
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    strcpy(world->dir, "/tmp/baton-listener-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    world->address.sun_family = AF_UNIX;
    (void)snprintf(world->address.sun_path, sizeof(world->address.sun_path), "%s/socket",
                   world->dir);
    world->log = memfd_create("log", MFD_CLOEXEC);
    world->logger = logger_new(world->log, LOG_FORMAT_HUMAN, LOG_NOTICE);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(open_unix(world, &world->listener), 0);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    end(world);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_true(world->is_closed);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    logger_free(world->logger);
    (void)close(world->log);
    (void)unlink(world->address.sun_path);
    assert_int_equal(rmdir(world->dir), 0);
    free(world);
    return 0;
}

static void come(const struct world *world, unsigned count)
{
    for (; count > 0; count--) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(
            connect(fd, (const struct sockaddr *)&world->address, sizeof(world->address)), 0);
        (void)close(fd); /* it waits in the kernel all the same */
    }
}

static unsigned lines_with(const struct world *world, const char *word)
{
    static char text[4096];
    unsigned count = 0;

    text[pread(world->log, text, sizeof(text) - 1, 0)] = '\0';
    for (const char *at = text; (at = strstr(at, word)); at++) {
        count++;
    }
    return count;
}

static void a_lack_of_memory_is_said_once_and_its_end(void **state)
{
    struct world *world = *state;

    for (unsigned times = 1; times <= 2; times++) {
        accept_fault = ENOMEM;
        accept_failures = 0;
        come(world, 1);
        AWAIT_ON(world->loop, accept_failures == 3);
        assert_int_equal(lines_with(world, "accepts-none"), times);
        assert_int_equal(lines_with(world, "accepts-again"), times - 1);
        accept_fault = 0;
        AWAIT_ON(world->loop, world->count == times);
        assert_int_equal(lines_with(world, "accepts-again"), times);
    }
    assert_int_equal(lines_with(world, world->address.sun_path), 4);
    assert_int_equal(lines_with(world, "Cannot allocate memory"), 2);
}

static void a_listener_that_waits_for_memory_can_be_ended(void **state)
{
    struct world *world = *state;

    accept_fault = ENFILE;
    accept_failures = 0;
    come(world, 1);
    AWAIT_ON(world->loop, accept_failures == 1);
    accept_fault = 0;
    end(world);
    AWAIT_ON(world->loop, world->is_closed);
    assert_int_equal(world->count, 0);
}

static void a_connection_that_is_gone_is_passed_over(void **state)
{
    struct world *world = *state;

    accept_fault = ECONNABORTED;
    accept_failures = 0;
    come(world, 1);
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    accept_fault = 0;
    AWAIT_ON(world->loop, world->count == 1);
    assert_int_equal(lines_with(world, "accepts"), 0);
}

static void others_have_their_turn_between_many_connections(void **state)
{
    enum { MANY = 100 };
    struct world *world = *state;

    come(world, MANY);
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    assert_in_range(world->count, 1, MANY - 1);
    AWAIT_ON(world->loop, world->count == MANY);
}

static void a_listener_that_is_ended_by_its_connection_takes_no_other(void **state)
{
    struct world *world = *state;

    world->ends_at_once = true;
    come(world, 2);
    AWAIT_ON(world->loop, world->is_closed);
    assert_int_equal(world->count, 1);
}

static void a_socket_has_its_mode_and_goes_with_its_listener(void **state)
{
    struct world *world = *state;
    struct stat about;

    assert_int_equal(stat(world->address.sun_path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    end(world);
    assert_int_equal(stat(world->address.sun_path, &about), -1);
}

static void the_socket_of_a_later_listener_stays(void **state)
{
    struct world *world = *state;
    struct listener *later;

    assert_int_equal(unlink(world->address.sun_path), 0);
    assert_int_equal(open_unix(world, &later), 0);
    end(world);
    assert_int_equal(access(world->address.sun_path, F_OK), 0);
    listener_end(later);
    assert_int_equal(access(world->address.sun_path, F_OK), -1);
}

static void what_is_no_stale_socket_is_not_replaced(void **state)
{
    struct world *world = *state;
    struct listener *other;
    FILE *file;

    assert_int_equal(open_unix(world, &other), BATON_EBUSY);
    end(world);
    file = fopen(world->address.sun_path, "we");
    (void)fclose(file);
    assert_int_equal(open_unix(world, &other), BATON_EEXIST);
    assert_int_equal(access(world->address.sun_path, F_OK), 0);
}

static void a_socket_of_another_type_that_a_process_has_is_not_replaced(void **state)
{
    struct world *world = *state;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char byte = 1;

    end(world);
    assert_int_equal(bind(fd, (const struct sockaddr *)&world->address, sizeof(world->address)), 0);
    assert_int_equal(open_unix(world, &world->listener), BATON_EBUSY);
    assert_int_equal(
        sendto(fd, &byte, 1, 0, (const struct sockaddr *)&world->address, sizeof(world->address)),
        1);
    (void)close(fd);
    assert_int_equal(open_unix(world, &world->listener), 0);
}

static struct world *intruder; /* NULL: nobody comes */
static int intruder_says;      /* what it gets: a pipe */

int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);

/* Another process comes after the first one's bind(). If nothing keeps it waiting it is done before
 * this returns. */
int __wrap_listen(int fd, int backlog)
{
    struct world *world = intruder;
    int ends[2];

    intruder = NULL;
    if (world != NULL) {
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        if (fork() == 0) {
            struct world other = {.address = world->address};
            struct listener *listener;
            int code = uv_loop_init(&other.loop);
            code = code ? code : open_unix(&other, &listener);
            _exit(write(ends[1], &code, sizeof(code)) == (ssize_t)sizeof(code) ? 0 : 1);
        }
        (void)close(ends[1]);
        intruder_says = ends[0];
        (void)poll(&(struct pollfd){.fd = intruder_says, .events = POLLIN}, 1, 200);
    }
    return __real_listen(fd, backlog);
}

static void of_two_that_find_a_stale_socket_at_one_time_one_listens(void **state)
{
    struct world *world = *state;
    int code = BATON_OK;

    end(world);
    intruder = world;
    assert_int_equal(open_unix(world, &world->listener), BATON_OK);
    assert_int_equal(read(intruder_says, &code, sizeof(code)), sizeof(code));
    assert_int_equal(code, BATON_EBUSY);
    assert_true(wait(NULL) > 0);
    (void)close(intruder_says);
    come(world, 1);
    AWAIT_ON(world->loop, world->count > 0);
}

static void both_families_reach_a_listener_on_all_addresses(void **state)
{
    struct world *world = *state;
    const struct listener_options options = options_of(world);
    const struct sockaddr_in6 all = {.sin6_family = AF_INET6};
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct listener *listener, *second;
    struct sockaddr_in6 taken = all;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = listener_open_tcp(&listener, &options, (const struct sockaddr *)&all);

    if (failed == UV_EAFNOSUPPORT || failed == UV_EADDRNOTAVAIL) {
        skip(); /* no IPv6 */
    }
    assert_int_equal(failed, 0);
    loopback.sin_port = taken.sin6_port = htons((uint16_t)listener_port(listener));
    assert_int_equal(connect(fd, (const struct sockaddr *)&loopback, sizeof(loopback)), 0);
    AWAIT_ON(world->loop, world->count == 1);
    (void)close(fd);
    assert_int_equal(listener_open_tcp(&second, &options, (const struct sockaddr *)&taken),
                     UV_EADDRINUSE);
    listener_end(listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lack_of_memory_is_said_once_and_its_end),
        TEST(a_listener_that_waits_for_memory_can_be_ended),
        TEST(a_connection_that_is_gone_is_passed_over),
        TEST(others_have_their_turn_between_many_connections),
        TEST(a_listener_that_is_ended_by_its_connection_takes_no_other),
        TEST(a_socket_has_its_mode_and_goes_with_its_listener),
        TEST(the_socket_of_a_later_listener_stays),
        TEST(what_is_no_stale_socket_is_not_replaced),
        TEST(a_socket_of_another_type_that_a_process_has_is_not_replaced),
        TEST(of_two_that_find_a_stale_socket_at_one_time_one_listens),
        TEST(both_families_reach_a_listener_on_all_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
