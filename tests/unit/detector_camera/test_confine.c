/* What a confined process may do, and what not. */
#include "detector/camera/confine.h"
#include "detector/camera/ring.h"
#include "unit/detector_camera/fenced.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct confinement strict = {.port = 8554};

static int first_step(void)
{
    return confine_process(&strict, NULL);
}

static int both_steps(void)
{
    return confine_process(&strict, NULL) || confine_stream(&strict, NULL);
}

static int nothing_can_be_written(void)
{
    CHECK(open("/tmp/baton-confine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0);
    CHECK(open("/dev/null", O_RDWR | O_CLOEXEC) < 0);
    CHECK(mkdir("/tmp/baton-confine", 0700) < 0);
    CHECK(unlink("/etc/passwd") < 0);
    CHECK(geteuid() != 0);
    return 0;
}

/* The ring, and of the largest size sixteen references of two bytes a sample, the picture that is
 * decoded and the one that is shown. A file in memory could be filled although it is mapped
 * nowhere.
 */
static int there_is_memory_for_the_largest_pictures_and_all_of_it_is_counted(void)
{
    struct ring_layout layout;
    size_t bytes;

    (void)ring_layout(&layout, RING_SIDE_MAX, RING_PIXELS_MAX / RING_SIDE_MAX, NULL);
    bytes = RING_BYTES + 18 * 2 * layout.bytes;
    CHECK(mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
          MAP_FAILED);
    CHECK(memfd_create("x", MFD_CLOEXEC) < 0 && errno == EPERM);
    return 0;
}

static int no_limit_can_be_higher_and_only_that_of_memory_lower(void)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) < 0 && errno == EPERM);
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = (rlim_t)1 << 31;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_max = limit.rlim_max == RLIM_INFINITY ? 0 : limit.rlim_max + 1;
    CHECK(setrlimit(RLIMIT_AS, &limit) < 0);
    return 0;
}

static int what_names_need_can_be_read(void)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK(close(fd) == 0);
    CHECK(getaddrinfo("localhost", "554", &hints, &found) == 0);
    CHECK(((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    freeaddrinfo(found);
    return 0;
}

/* Of a service with a user of its own, /etc may hold what that user alone can read. */
static int read_more(void)
{
    CHECK(open("/proc/self/environ", O_RDONLY | O_CLOEXEC) < 0);
    CHECK(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
    CHECK(open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0);
    return 0;
}

static int another_program_is_the_end(void)
{
    char *argv[] = {(char *)"true", NULL};
    (void)execv("/bin/true", argv);
    return 1;
}

static int another_process_is_refused(void)
{
    CHECK(fork() < 0 && errno == EPERM);
    return 0;
}

static int no_further_connection_file_or_code_is_had_once_connected(void)
{
    CHECK(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    CHECK(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    CHECK(open("/etc/hosts", O_RDONLY | O_CLOEXEC) < 0);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
          MAP_FAILED);
    return another_process_is_refused();
}

static int dial_other_port(void)
{
    int error = dial_at(SOCK_STREAM, "127.0.0.1", 8554);

    CHECK(error == ECONNREFUSED || error == 0);
    CHECK(dial_at(SOCK_STREAM, "127.0.0.1", 8555) == EACCES);
    return 0;
}

/* For what Landlock alone forbids. */
static void with_landlock(int version, int (*body)(void))
{
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < version) {
        skip();
    }
    assert_int_equal(run_fenced(first_step, body), 0);
}

static void nothing_else_of_etc_or_proc_can_be_read(void **state)
{
    with_landlock(1, read_more);
}

static void only_the_port_of_the_camera_can_be_dialled(void **state)
{
    with_landlock(4, dial_other_port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FENCED(nothing_can_be_written, first_step, 0),
        FENCED(there_is_memory_for_the_largest_pictures_and_all_of_it_is_counted, first_step, 0),
        FENCED(no_limit_can_be_higher_and_only_that_of_memory_lower, first_step, 0),
        FENCED(what_names_need_can_be_read, first_step, 0),
        cmocka_unit_test(nothing_else_of_etc_or_proc_can_be_read),
        FENCED(another_program_is_the_end, first_step, -SIGSYS),
        FENCED(another_program_is_the_end, both_steps, -SIGSYS),
        FENCED(another_process_is_refused, first_step, 0),
        FENCED(no_further_connection_file_or_code_is_had_once_connected, both_steps, 0),
        cmocka_unit_test(only_the_port_of_the_camera_can_be_dialled),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_confine", tests, NULL, NULL);
}
