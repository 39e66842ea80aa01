/* The child that opens archives is confined, and nothing that it says is believed. */
#include "cmocka_all.h"

#include "unit/detector_model/archive_place.h"
#include "unit/detector_model/unpack_liar.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE_BYTES = 8 << 20, TEXT_BYTES = 8192, LOOKS_MAX = 20000 };

static int lie(struct place *place, enum lie which, struct baton_error *error)
{
    const char first = (char)which;
    int fd = zip_file_of(&first, 1), rc;

    place->rules.program = BATON_LIAR_PROGRAM;
    place->rules.unpacked_bytes_max = 4 << 20;
    rc = unpack(place, fd, error);
    close(fd);
    return rc;
}

static void what_the_child_says_is_not_believed(void **state)
{
    static const struct {
        enum lie lie;
        int code;
        const char *said;
    } cases[] = {
        {LIE_NOTHING, BATON_EUNAVAILABLE, "without a word"},
        {LIE_CRASH, BATON_EPROTO, "signal 11"},
        {LIE_CLOSED, BATON_EUNAVAILABLE, "without a word"},
        {LIE_HALF_HEAD, BATON_EPROTO, "nonsense"},
        {LIE_ERROR, BATON_EPROTO, "a?[31m?b"},
        {LIE_CODE, BATON_EPROTO, "nonsense"},
        {LIE_LONG_ERROR, BATON_EPROTO, "nonsense"},
        {LIE_BAD_PIPELINE, BATON_EPROTO, "pipeline.json"},
        {LIE_LONG_PIPELINE, BATON_ETOOBIG, "pipeline.json has more than 1048576 bytes"},
        {LIE_ENDLESS, BATON_ETOOBIG, "limit"},
        {LIE_TORN, BATON_EUNAVAILABLE, "without a word"},
    };
    struct place *place = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct baton_error error = {0};
        int rc = lie(place, cases[i].lie, &error);

        if (rc != cases[i].code || strstr(error.message, cases[i].said) == NULL) {
            fail_msg("lie %d: %d, %s", (int)cases[i].lie, rc, error.message);
        }
        assert_int_equal(process_count_entries(place->path), 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    }
    assert_int_equal(lie(place, LIE_NONE, NULL), 0);
}

static void a_silent_child_is_given_up_with_its_order(void **state)
{
    struct place *place = *state;
    atomic_bool is_canceled = true;

    place->rules.is_canceled = &is_canceled;
    assert_int_equal(lie(place, LIE_SILENT, NULL), BATON_ECANCELED);
    assert_int_equal(process_count_entries(place->path), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_child_that_is_missing_is_named(void **state)
{
    struct place *place = *state;
    struct baton_error error = {0};
    int fd = zip_file_of("", 0);

    place->rules.program = "/nonexistent/baton-unpack";
    assert_int_equal(unpack(place, fd, &error), BATON_EUNAVAILABLE);
    close(fd);
    assert_non_null(strstr(error.message, "/nonexistent/baton-unpack"));
    assert_int_equal(process_count_entries(place->path), 0);
}

/* The file of /proc of that process, with a NUL. */
static void read_proc(pid_t pid, const char *name, char text[TEXT_BYTES])
{
    char path[64];
    ssize_t got;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* One that is too large to be told at once. */
static int large_archive(void)
{
    char *large = calloc(1, LARGE_BYTES + 1);
    int fd;

    assert_non_null(large);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        large[i] = (char)(1 + i * 2654435761U % 251);
    }
    fd = zip_sample(large);
    free(large);
    return fd;
}

/* Nobody reads what it says, so it waits in the middle of its work. */
static void start_waiting(struct helper *ret, const struct place *place, int archive_fd)
{
    struct pollfd fd;

    assert_int_equal(unpack_child_start(ret, archive_fd, &place->rules, NULL), 0);
    assert_int_equal(send(ret->socket, SAMPLE_MODEL, strlen(SAMPLE_MODEL), 0),
                     (ssize_t)strlen(SAMPLE_MODEL));
    fd = (struct pollfd){.fd = ret->socket, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 20000), 1); /* it begins to tell: the fences stand */
}

static void the_child_is_confined_when_it_reads(void **state)
{
    struct place *place = *state;
    struct helper child;
    char text[TEXT_BYTES];
    int archive_fd = large_archive();

    start_waiting(&child, place, archive_fd);
    read_proc(child.pid, "status", text);
    assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
    assert_non_null(strstr(text, "\nSeccomp:\t2\n"));
    assert_non_null(strstr(text, "\nCapEff:\t0000000000000000\n"));
    assert_non_null(strstr(text, "\nThreads:\t1\n"));
    if (geteuid() == 0) {
        assert_non_null(strstr(text, "\nUid:\t65534\t65534\t65534\t65534\n"));
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they map terabytes */
    read_proc(child.pid, "limits", text);
    assert_non_null(strstr(text, "\nMax address space         268435456 "));
#endif
    unpack_child_end(&child);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    close(archive_fd);
}

static pid_t start(void *userdata)
{
    struct helper child;

    start_waiting(&child, userdata, large_archive());
    return child.pid;
}

/* One that is stopped does not notice that nobody listens any more. */
static void a_child_that_hangs_dies_with_who_started_it(void **state)
{
    process_must_die_with_starter(start, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_child_says_is_not_believed),
        TEST(a_silent_child_is_given_up_with_its_order),
        TEST(a_child_that_is_missing_is_named),
        TEST(the_child_is_confined_when_it_reads),
        TEST(a_child_that_hangs_dies_with_who_started_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
