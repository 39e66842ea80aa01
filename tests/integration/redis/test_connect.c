/* Connections to real servers, and what a server may do to a connected client. */
#include "cmocka_all.h"
#include "lib/process.h"
#include "probe.h"
#include "server.h"

#include <signal.h>
#include <string.h>

static struct server server;
static struct probe ours;
static char url[512];

/* ---- Unix sockets ---------------------------------------------------------------------------- */

static void a_unix_socket_serves_like_a_port(void **state)
{
    static const char *const schemes[] = {"unix", "redis+unix"};

    server_start(&server);
    for (size_t i = 0; i < 2; i++) {
        snprintf(url, sizeof(url), "%s://%s?db=3&lease=1s&max-lease=1s", schemes[i], server.socket);
        probe_open(&ours, url, NULL);
        PROBE_AWAIT(&ours, ours.ups == 1);
        PROBE_ASK(&ours, "SET", "where", "here");
        assert_string_equal(ours.answer, "OK");
        assert_string_equal(redis_peer_address(ours.redis), server.socket);
        probe_close(&ours);
        assert_true(server_says(&server, "INFO keyspace", "db3:keys=1"));
    }
}

static void a_unix_socket_takes_user_and_password(void **state)
{
    server_set(&server, "requirepass", "geheim");
    server_start(&server);
    snprintf(url, sizeof(url), "unix://:geheim@%s", server.socket);
    probe_open(&ours, url, NULL);
    PROBE_AWAIT(&ours, ours.ups == 1);
    PROBE_ASK(&ours, "PING");
    assert_string_equal(ours.answer, "PONG");
    assert_false(probe_has_logged(&ours, "geheim"));
    probe_close(&ours);
}

static void a_socket_that_is_not_there_yet_is_waited_for(void **state)
{
    snprintf(url, sizeof(url), "unix://%s", server.socket);
    probe_open(&ours, url, "news");
    PROBE_AWAIT(&ours, ours.downs > 1);
    assert_non_null(strstr(ours.error.message, server.socket));
    assert_non_null(strstr(ours.error.message, "no such file"));
    server_start(&server);
    PROBE_AWAIT(&ours, ours.ups == 1);
    server_kill(&server);
    PROBE_AWAIT(&ours, !redis_is_up(ours.redis));
    server_start(&server);
    PROBE_AWAIT(&ours, ours.ups == 2);
    PROBE_AWAIT(&ours, server_says(&server, "PUBSUB CHANNELS", "news"));
    server_tell(&server, "PUBLISH news hello");
    PROBE_AWAIT(&ours, strcmp(ours.heard, "hello") == 0);
    probe_close(&ours);
}

/* ---- A server that is there and does not answer ---------------------------------------------- */

static void a_hung_server_is_noticed_by_whoever_only_listens(void **state)
{
    server_start(&server);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
    probe_open(&ours, url, "news");
    PROBE_AWAIT(&ours, ours.ups == 1);
    PROBE_AWAIT(&ours, server_says(&server, "CLIENT LIST", "cmd=ping"));
    assert_int_equal(ours.downs, 0); /* silence alone is no trouble */
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    PROBE_AWAIT(&ours, ours.downs == 1);
    assert_non_null(strstr(ours.error.message, "no answer in time"));
    PROBE_AWAIT(&ours, ours.downs == 2); /* the greeting has no answer either */
    assert_non_null(strstr(ours.error.message, "no answer in time"));
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    PROBE_AWAIT(&ours, ours.ups == 2);
    probe_close(&ours);
}

static void a_hung_server_is_noticed_without_a_command(void **state)
{
    server_start(&server);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
    probe_open(&ours, url, NULL);
    PROBE_AWAIT(&ours, ours.ups == 1);
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    PROBE_AWAIT(&ours, ours.downs == 1);
    assert_non_null(strstr(ours.error.message, "no answer in time"));
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    PROBE_AWAIT(&ours, ours.ups == 2);
    probe_close(&ours);
}

static void a_change_of_role_is_noticed_between_greetings(void **state)
{
    server_start(&server);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
    probe_open(&ours, url, NULL);
    PROBE_AWAIT(&ours, ours.ups == 1);
    assert_true(redis_identity_of(ours.redis)->is_master);
    server_tell(&server, "REPLICAOF 127.0.0.1 %d", process_free_port());
    PROBE_AWAIT(&ours, !redis_identity_of(ours.redis)->is_master);
    server_tell(&server, "REPLICAOF NO ONE");
    PROBE_AWAIT(&ours, redis_identity_of(ours.redis)->is_master);
    assert_true(redis_identity_of(ours.redis)->was_promoted);
    assert_string_not_equal(redis_identity_of(ours.redis)->history, ours.identity.history);
    assert_int_equal(ours.downs, 0);
    probe_close(&ours);
}

int main(void)
{
#define CASE(name)                                                                                 \
    cmocka_unit_test_prestate_setup_teardown(name, server_setup, server_teardown, &server)
    const struct CMUnitTest tests[] = {
        CASE(a_unix_socket_serves_like_a_port),
        CASE(a_unix_socket_takes_user_and_password),
        CASE(a_socket_that_is_not_there_yet_is_waited_for),
        CASE(a_hung_server_is_noticed_by_whoever_only_listens),
        CASE(a_hung_server_is_noticed_without_a_command),
        CASE(a_change_of_role_is_noticed_between_greetings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
