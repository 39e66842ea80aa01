/* Opening, the structs of <baton.h>, and crashes: what does not depend on the provider. */
#include "cmocka_all.h"
#include "fixture.h"
#include "lib/process.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HAS_OPENED = 42 };

/* ---- Opening --------------------------------------------------------------------------------- */

static void an_unknown_provider_is_named_with_those_there_are(void **state)
{
    struct baton_error error;
    struct baton *baton = NULL;

    assert_int_equal(baton_open(&baton, "etcd://host:1/?x=1", NULL, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "rediss:, ")); /* a provider's other schemes, too */
    assert_non_null(strstr(error.message, "etcd"));
    assert_non_null(strstr(error.message, "memory:"));
    assert_int_equal(baton_open(&baton, "", NULL, &error), BATON_EINVAL);
    assert_null(baton);
}

static void a_password_in_a_url_is_in_no_error(void **state)
{
    struct baton_error error = {0};
    struct baton *baton = NULL;

    assert_int_equal(baton_open(&baton, "nosuch://me:geheim@host/", NULL, &error), BATON_EINVAL);
    assert_null(strstr(error.message, "geheim"));
}

static void settings_beat_the_url(void **state)
{
    const struct baton_setting settings[] = {{"node", "from-settings"}};
    struct baton_options options = {
        .size = sizeof(options), .settings = settings, .setting_count = 1};
    struct baton_election *election;
    struct baton_member leader;
    struct baton *baton = NULL;

    assert_int_equal(baton_open(&baton, "memory:s?node=from-url", &options, NULL), BATON_OK);
    election = campaign(baton, "e");
    assert_int_equal(baton_wait(election, -1, NULL), BATON_OK);
    assert_int_equal(baton_leader(election, &leader, NULL, NULL), BATON_OK);
    assert_string_equal(leader.id, "from-settings");
    baton_close(baton);
}

/* Passed over, each of these would elect by other rules than were asked for. */
static void a_setting_that_the_provider_does_not_have_is_refused(void **state)
{
    static const struct {
        const char *url, *says;
    } rows[] = {
        {"memory:?peers=b@127.0.0.1:2", "\"peers\": memory: has no such setting; it has node"},
        {"agent:?lease=3s", "\"lease\": agent: has no such setting; it has node"},
        {"redis://127.0.0.1:1?wait-replica=1", "is \"wait-replicas\" meant?"},
        {"redis://127.0.0.1:1?lease=1s&lease=9s", "lease: is given twice"},
        {"redis://127.0.0.1:1?lease=30", "lease: '30': must be a duration with its unit"},
        {"redis://127.0.0.1:1?state-prefix", "state-prefix: is empty"},
        {"redis+sentinel://127.0.0.1:1/s?data=d", "redis+sentinel: has no such setting"},
    };
    const struct baton_setting settings[] = {{"quorum", NULL}, {NULL, NULL}};
    struct baton_options options = {
        .size = sizeof(options), .settings = settings, .setting_count = 1};
    struct baton_error error = {0};
    struct baton *baton = NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(baton_open(&baton, rows[i].url, NULL, &error), BATON_EINVAL);
        if (!strstr(error.message, rows[i].says)) {
            fail_msg("%s: %s", rows[i].url, error.message);
        }
    }
    assert_int_equal(baton_open(&baton, "redis://127.0.0.1:1", &options, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "quorum: is empty"));
    options.settings++; /* without a name */
    assert_int_equal(baton_open(&baton, "memory:", &options, &error), BATON_EINVAL);
    assert_null(baton);
}

static void a_memory_without_a_name_is_its_own(void **state)
{
    struct baton *one = NULL;
    struct baton *other = NULL;

    assert_int_equal(baton_open(&one, "memory:", NULL, NULL), BATON_OK);
    assert_int_equal(baton_open(&other, "memory:", NULL, NULL), BATON_OK);
    (void)lead(one, "e");
    (void)lead(other, "e");
    baton_close(one);
    baton_close(other);
    baton_close(NULL);
    baton_stop(NULL);
    assert_int_equal(baton_leave(NULL, NULL), BATON_OK);
}

static void two_of_one_name_cannot_run_in_one_election(void **state)
{
    struct baton *one = open_memory("twin");
    struct baton *other = open_memory("twin");
    struct baton_election *election = NULL;
    struct baton_error error;

    (void)campaign(one, "e");
    assert_int_equal(baton_campaign(&election, other, "e", NULL, &error), BATON_EEXIST);
    assert_non_null(strstr(error.message, "twin"));
    baton_close(one);
    baton_close(other);
}

/* ---- Structs that may grow ------------------------------------------------------------------- */

static void a_struct_that_does_not_say_its_size_is_refused(void **state)
{
    struct baton_options options = {.node = "a"};
    struct baton_campaign_options campaign = {.size = sizeof(size_t) + 4};
    struct baton_log log = {.fd = 2};
    struct baton_options logged = {.size = sizeof(logged), .log = &log};
    struct baton_election *election = NULL;
    struct baton_error error = {0};
    struct baton *baton = NULL;

    assert_int_equal(baton_open(&baton, "memory:", &options, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "sizeof(struct baton_options)"));
    assert_int_equal(baton_open(&baton, "memory:", &logged, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "sizeof(struct baton_log)"));
    assert_null(baton);
    assert_int_equal(baton_open(&baton, "memory:", NULL, NULL), BATON_OK);
    assert_int_equal(baton_campaign(&election, baton, "e", &campaign, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "its size is 12"));
    baton_close(baton);
}

/* The fields behind its size are not the program's. */
static void a_program_with_an_older_header_leaves_the_newer_fields_out(void **state)
{
    struct baton_options options = {.size = offsetof(struct baton_options, settings),
                                    .node = "old",
                                    .settings = (const struct baton_setting *)1,
                                    .setting_count = SIZE_MAX};
    struct baton_election *election;
    struct baton_member leader;
    struct baton *baton = NULL;

    assert_int_equal(baton_open(&baton, "memory:", &options, NULL), BATON_OK);
    election = campaign(baton, "e");
    assert_int_equal(baton_wait(election, -1, NULL), BATON_OK);
    assert_int_equal(baton_leader(election, &leader, NULL, NULL), BATON_OK);
    assert_string_equal(leader.id, "old");
    baton_close(baton);
}

static void a_newer_field_is_refused_only_if_it_is_set(void **state)
{
    struct {
        struct baton_options known;
        size_t newer;
    } options = {.known.size = sizeof(options)};
    struct baton_error error = {0};
    struct baton *baton = NULL;

    assert_int_equal(baton_open(&baton, "memory:", &options.known, NULL), BATON_OK);
    baton_close(baton);
    options.newer = 1;
    assert_int_equal(baton_open(&baton, "memory:", &options.known, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "older"));
}

/* ---- Structs --------------------------------------------------------------------------------- */

/* <baton.h> promises it within a major version; as 64-bit machines lay them out. */
static void structs_without_a_size_field_keep_their_size(void **state)
{
    if (sizeof(void *) != 8) {
        skip();
    }
    assert_int_equal(sizeof(struct baton_member), 288);
    assert_int_equal(sizeof(struct baton_error), 516);
    assert_int_equal(sizeof(struct baton_value), 32);
    assert_int_equal(sizeof(struct baton_setting), 16);
    assert_int_equal(offsetof(struct baton_event, text),
                     856); /* the last field that it began with */
}

/* ---- Crashes --------------------------------------------------------------------------------- */

static volatile sig_atomic_t own_handler_ran;

static void own_handler(int number)
{
    own_handler_ran = 1;
    _exit(42);
}

static int crash(void *with_own_handler)
{
    struct baton_options options = {.size = sizeof(options), .announces_crashes = true};
    struct baton *baton = NULL;

    if (with_own_handler) {
        (void)signal(SIGSEGV, own_handler);
    } else {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's goes first */
    }
    if (baton_open(&baton, "memory:", &options, NULL) != BATON_OK) {
        return 1;
    }
    (void)raise(SIGSEGV);
    return 2;
}

static void a_crash_ends_as_it_would_have(void **state)
{
    bool yes = true;
    int status;

    status = process_wait(process_fork(crash, NULL));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    status = process_wait(process_fork(crash, &yes));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* ---- Without descriptors --------------------------------------------------------------------- */

static int open_with_room(void *userdata)
{
    int first = dup(STDIN_FILENO);
    const rlim_t room = (rlim_t)(first + *(int *)userdata);
    const struct rlimit limit = {room, room};
    struct baton *baton = NULL;

    (void)close(first);
    if (first < 0 || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return EXIT_FAILURE;
    }
    return baton_open(&baton, "memory:", NULL, NULL) == BATON_OK ? HAS_OPENED : EXIT_SUCCESS;
}

/* libuv would end the whole program, where there is none for its pipe of signals. */
static void a_program_without_descriptors_gets_an_error(void **state)
{
    int status = EXIT_SUCCESS;

    for (int room = 0; status != HAS_OPENED; room++) {
        int ended = process_wait(process_fork(open_with_room, &room));
        assert_true(WIFEXITED(ended));
        status = WEXITSTATUS(ended);
        assert_int_not_equal(status, EXIT_FAILURE);
        assert_true(room < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: they fork, which a sanitizer forbids once there are threads. */
        cmocka_unit_test(a_crash_ends_as_it_would_have),
        cmocka_unit_test(a_program_without_descriptors_gets_an_error),
        cmocka_unit_test(an_unknown_provider_is_named_with_those_there_are),
        cmocka_unit_test(a_password_in_a_url_is_in_no_error),
        cmocka_unit_test(settings_beat_the_url),
        cmocka_unit_test(a_setting_that_the_provider_does_not_have_is_refused),
        cmocka_unit_test(a_memory_without_a_name_is_its_own),
        cmocka_unit_test(two_of_one_name_cannot_run_in_one_election),
        cmocka_unit_test(a_struct_that_does_not_say_its_size_is_refused),
        cmocka_unit_test(a_program_with_an_older_header_leaves_the_newer_fields_out),
        cmocka_unit_test(a_newer_field_is_refused_only_if_it_is_set),
        cmocka_unit_test(structs_without_a_size_field_keep_their_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
