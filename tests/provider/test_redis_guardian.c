/* A leader is killed, and its server is behind TLS: the guardian verifies the server and releases
 * the lock. */
#include "integration/redis/certificates.h"
#include "lib/process.h"
#include "provider/group.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct server server;
static char folder[128];

static int begin(void **state)
{
    certificates_make(folder, sizeof(folder));
    server_init(&server);
    return 0;
}

static int end(void **state)
{
    server_fini(&server);
    process_remove_folder(folder);
    return 0;
}

/* Leases that no test waits for. */
#define LONG "lease=600s&max-lease=600s&heartbeat-interval=5s"

/* Files are named as from the folder that the process is in: its guardian is elsewhere. */
static int lead(void *userdata)
{
    struct baton *baton;
    struct baton_election *election;

    assert_int_equal(chdir(folder), 0);
    ASSERT_OK(baton_open(&baton, userdata, NULL, failure));
    ASSERT_OK(baton_campaign(&election, baton, "race", NULL, failure));
    (void)pause(); /* until it is killed */
    return 0;
}

/* And the leader knows: it has entered that. */
static bool is_led(const struct server *of)
{
    return server_says(of, "GET race:master", "-") &&
           server_says(of, "GET race:master_process", "-");
}

static pid_t start_leader(const char *name, const char *wants_clients, const char *query)
{
    int port = certificates_serve(&server, folder, name, wants_clients);
    char url[512];
    pid_t child;

    server_start(&server);
    server_trust(&server, "race");
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?" LONG "&%s", port, query);
    child = process_fork(lead, url);
    SERVER_AWAIT(is_led(&server));
    return child;
}

static void is_released(const char *name, const char *wants_clients, const char *query)
{
    process_end(start_leader(name, wants_clients, query));
    SERVER_AWAIT(!server_says(&server, "GET race:master", "-"));
    SERVER_AWAIT(!server_says(&server, "HVALS race:processes", "master"));
}

static void a_lease_behind_tls_is_released(void **state)
{
    is_released("right", "no", "ca=ca.crt");
}

static void a_server_that_wants_our_certificate_is_shown_it(void **state)
{
    is_released("right", "yes", "ca=ca.crt&cert=client.crt&key=client.key");
}

static void the_name_that_was_demanded_is_demanded_again(void **state)
{
    is_released("elsewhere", "no", "ca=ca.crt&sni=elsewhere.test");
}

static void who_is_not_verified_is_told_all_the_same(void **state)
{
    is_released("expired", "no", "verify=off");
}

enum { SERVERS = 3 };

/* Each of several has a name of its own to prove. */
static void several_servers_behind_tls_are_told(void **state)
{
    struct server others[SERVERS - 1];
    struct server *all[SERVERS] = {&server, &others[0], &others[1]};
    int ports[SERVERS];
    char url[512];
    pid_t child;

    for (int i = 0; i < SERVERS; i++) {
        if (i > 0) {
            server_init(all[i]);
        }
        ports[i] = certificates_serve(all[i], folder, "right", "no");
        server_start(all[i]);
        server_trust(all[i], "race");
    }
    snprintf(url, sizeof(url),
             "rediss://127.0.0.1:%d,localhost:%d,127.0.0.1:%d?quorum=majority&ca=ca.crt&" LONG,
             ports[0], ports[1], ports[2]);
    child = process_fork(lead, url);
    for (int i = 0; i < SERVERS; i++) {
        SERVER_AWAIT(is_led(all[i]));
    }
    process_end(child);
    for (int i = 0; i < SERVERS; i++) {
        SERVER_AWAIT(!server_says(all[i], "GET race:master", "-"));
    }
    server_fini(&others[0]);
    server_fini(&others[1]);
}

static void exchange(const char *end)
{
    char from[192];
    char to[192];

    snprintf(from, sizeof(from), "%s/elsewhere.%s", folder, end);
    snprintf(to, sizeof(to), "%s/right.%s", folder, end);
    assert_int_equal(rename(from, to), 0);
}

/* Another server has come to the same port, which cannot prove who it is. Orphans are ours for this
 * test, so that the guardian's end can be waited for. */
static void a_server_that_is_another_is_told_nothing(void **state)
{
    pid_t child;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    child = start_leader("right", "no", "ca=ca.crt");
    server_kill(&server);
    exchange("crt");
    exchange("key");
    server_start(&server);
    process_end(child);
    assert_true(waitpid(-1, NULL, 0) > 0); /* the other child, the server, goes on */
    assert_true(process_lives(server.pid));
    assert_false(server_says(&server, "INFO commandstats", "cmdstat_evalsha"));
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_lease_behind_tls_is_released),
        CASE(a_server_that_wants_our_certificate_is_shown_it),
        CASE(the_name_that_was_demanded_is_demanded_again),
        CASE(who_is_not_verified_is_told_all_the_same),
        CASE(several_servers_behind_tls_are_told),
        CASE(a_server_that_is_another_is_told_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
