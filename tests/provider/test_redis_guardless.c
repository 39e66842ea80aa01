/* A server behind TLS without baton-guardian-tls: a warning says what is lost, and elections go on.
 */
#include "integration/redis/certificates.h"
#include "lib/process.h"
#include "provider/group.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct server server;
static char folder[128];
static char url[512];

static int begin(void **state)
{
    int port;

    certificates_make(folder, sizeof(folder));
    server_init(&server);
    port = certificates_serve(&server, folder, "right", "no");
    server_start(&server);
    server_trust(&server, "race");
    snprintf(url, sizeof(url),
             "rediss://127.0.0.1:%d?ca=%s/"
             "ca.crt&lease=600s&max-lease=600s&heartbeat-interval=5s&check-interval=100ms",
             port, folder);
    return 0;
}

static int end(void **state)
{
    server_fini(&server);
    process_remove_folder(folder);
    return 0;
}

static void open_with_log(struct member *member, FILE *file)
{
    const struct baton_log log = {
        .size = sizeof(log), .fd = fileno(file), .level = BATON_LOG_WARNING, .json = true};
    const struct baton_options options = {.size = sizeof(options), .node = "n", .log = &log};

    ASSERT_OK(baton_open(&member->baton, url, &options, failure));
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", NULL, failure));
}

static bool has_line(FILE *file, const char *one, const char *other)
{
    char line[2048];
    bool has = false;

    rewind(file);
    while (fgets(line, sizeof(line), file)) {
        has = has || (strstr(line, one) && strstr(line, other));
    }
    return has;
}

static int lead(void *userdata)
{
    struct member member;
    FILE *file = tmpfile();

    open_with_log(&member, file);
    (void)pause(); /* until it is killed */
    return 0;
}

static void what_is_lost_is_told_and_elections_go_on(void **state)
{
    FILE *file = tmpfile();
    struct member member;

    assert_non_null(file);
    open_with_log(&member, file);
    GROUP_AWAIT(baton_is_leader(member.election));
    assert_true(has_line(file, "no-guardian", "baton-guardian-tls"));
    assert_true(has_line(file, "no-guardian", "are not released at once but run out"));
    ASSERT_OK(baton_put(member.baton, "k", "v", 1, BATON_ANY_REVISION, 0, failure));
    ASSERT_OK(baton_resign(member.election, BATON_TIMEOUT_DEFAULT, failure));
    GROUP_AWAIT(baton_is_leader(member.election));
    baton_close(member.baton);
    (void)fclose(file);
}

/* The guardian that is there knows nothing to say, and says nothing: not in the clear either. */
static void whoever_dies_is_followed_when_the_lease_has_run_out(void **state)
{
    FILE *file = tmpfile();
    struct member member;
    pid_t child = process_fork(lead, NULL);

    SERVER_AWAIT(server_says(&server, "GET race:master_process", "-"));
    process_end(child);
    open_with_log(&member, file);
    GROUP_AWAIT(server_says(&server, "HVALS race:processes", "\"observes\":false"));
    assert_true(server_says(&server, "GET race:master", "-"));
    assert_false(baton_is_leader(member.election));
    server_tell(&server, "PEXPIRE race:master 1");
    GROUP_AWAIT(baton_is_leader(member.election));
    baton_close(member.baton);
    (void)fclose(file);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(what_is_lost_is_told_and_elections_go_on),
        CASE(whoever_dies_is_followed_when_the_lease_has_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
