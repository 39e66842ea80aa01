/* What a service manager hears, and when it is heard. */
#include "cmocka_all.h"
#include "options/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char heard[1024];

/* Listens at an abstract address, which a test leaves nothing behind of. */
static int listen_as_manager(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char path[64];
    int length = snprintf(path, sizeof(path), "@baton-test-%d", (int)getpid());

    memcpy(address.sun_path, path, (size_t)length);
    address.sun_path[0] = '\0';
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)),
                     0);
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    return fd;
}

static const char *hear(int fd)
{
    ssize_t bytes = recv(fd, heard, sizeof(heard) - 1, MSG_DONTWAIT);

    heard[bytes > 0 ? bytes : 0] = '\0';
    return heard;
}

static void a_manager_at_an_abstract_address_hears_all(void **state)
{
    char status[2000];
    int fd = listen_as_manager();

    notify_ready();
    assert_string_equal(hear(fd), "READY=1");
    notify_status("n1 leads");
    assert_string_equal(hear(fd), "STATUS=n1 leads");
    memset(status, 'x', sizeof(status) - 1);
    status[sizeof(status) - 1] = '\0';
    notify_status(status);
    assert_int_equal(strncmp(hear(fd), "STATUS=xxx", 10), 0);
    (void)close(fd);
    notify_alive(); /* to nobody */
}

static void without_a_manager_or_with_an_absurd_address_nothing_is_sent(void **state)
{
    char path[300];

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    (void)setenv("NOTIFY_SOCKET", path, 1);
    notify_ready();
    (void)unsetenv("NOTIFY_SOCKET");
    notify_ready();
}

static int64_t interval_of(const char *usec, const char *pid)
{
    (void)setenv("WATCHDOG_USEC", usec, 1);
    (void)(pid ? setenv("WATCHDOG_PID", pid, 1) : unsetenv("WATCHDOG_PID"));
    return notify_interval().ns;
}

static void the_watchdog_counts_for_the_process_that_it_names(void **state)
{
    char own[32];

    (void)snprintf(own, sizeof(own), "%d", (int)getpid());
    assert_int_equal(interval_of("100000", NULL), 50000000);
    assert_int_equal(interval_of("100000", own), 50000000);
    assert_int_equal(interval_of("100000", "1"), 0);
    assert_int_equal(interval_of("100000", ""), 0);
    assert_int_equal(interval_of("", NULL), 0);
    assert_int_equal(interval_of("-1", NULL), 0);
    assert_int_equal(interval_of("12x", NULL), 0);
    assert_int_equal(interval_of("99999999999999999999999", NULL), 0);
    (void)unsetenv("WATCHDOG_USEC");
    assert_int_equal(notify_interval().ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manager_at_an_abstract_address_hears_all),
        cmocka_unit_test(without_a_manager_or_with_an_absurd_address_nothing_is_sent),
        cmocka_unit_test(the_watchdog_counts_for_the_process_that_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
