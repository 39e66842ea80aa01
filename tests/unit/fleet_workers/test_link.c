/* The connection to a worker, which a server on the same loop plays. */
#include "cmocka_all.h"
#include "fleet/workers/link.h"
#include "web/upgrade.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORT                                                                                     \
    "{\"type\":\"stateReport\",\"cpuUsage\":1,\"memoryUsage\":1,\"gpuUsage\":0,"                   \
    "\"gpuMemoryUsage\":0,\"cameraConnections\":[]}"

enum { CONNECTIONS = 8 };

struct world {
    uv_loop_t loop;
    struct link *link;
    struct link_config config;
    uint64_t connections;
    char url[64];
    bool may_send;
    /* What the link tells. */
    unsigned reports, online, offline, closed, failed, refused, others;
    unsigned wanted;   /* lists, since the worker was offline; */
    unsigned unwanted; /* times that it was */
    uint64_t ticket;
    char reason[256];
    /* The worker. */
    struct web_server *server;
    int port;
    struct web_socket *socket; /* the latest connection; NULL: none */
    unsigned opened;
    bool is_silent, needs_token;
    char got[1024]; /* types of messages */
};

/* ---- The worker ------------------------------------------------------------------------------ */

static void worker_got(void *userdata, const char *text, size_t bytes)
{
    struct world *world = userdata;
    struct command command = {0};
    size_t used = strlen(world->got);

    assert_int_equal(command_parse(text, bytes, sizeof(struct subscription), &command, NULL), 0);
    (void)snprintf(world->got + used, sizeof(world->got) - used, "%s%s ", command.name,
                   command.type == COMMAND_PATCH_SESSION_RESULT ? command.text : command.display);
    command_fini(&command);
}

static void worker_refused(void *userdata, const char *reason)
{
    fail_msg("the worker refuses: %s", reason);
}

static void worker_drain(void *userdata)
{
}

static void worker_closing(void *userdata)
{
    struct world *world = userdata;

    world->socket = NULL;
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    struct world *world = userdata;
    const struct web_socket_options options = {.message_max = 1 << 20,
                                               .backlog_max = 8 << 20,
                                               .ping_after_s = 60,
                                               .callbacks = {.on_text = worker_got,
                                                             .on_refused = worker_refused,
                                                             .on_drain = worker_drain,
                                                             .on_closing = worker_closing,
                                                             .on_close = worker_drain},
                                               .userdata = world};

    if (world->needs_token &&
        !web_shows_token(web_exchange_request(exchange), "token-of-16-bytes")) {
        web_refuse(exchange, 401, "a token is needed");
        return;
    }
    world->socket = web_socket_open(exchange, &options);
    assert_non_null(world->socket);
    world->opened++;
    if (!world->is_silent) {
        assert_true(web_socket_send(world->socket, REPORT, strlen(REPORT)));
    }
}

static void open_worker(struct world *world)
{
    const struct web_config config = {.loop = &world->loop,
                                      .host = "127.0.0.1",
                                      .port = world->port,
                                      .connections_max = CONNECTIONS,
                                      .head_within_s = 3600,
                                      .read_within_s = 3600,
                                      .head_max = 4096,
                                      .answer_max = 16 << 20,
                                      .callbacks = {.on_request = on_request},
                                      .userdata = world};

    assert_int_equal(web_server_open(&world->server, &config, NULL), 0);
    world->port = web_server_port(world->server);
}

/* Its connections end with it. */
static void close_worker(struct world *world)
{
    struct web_server *server = world->server;

    world->server = NULL;
    web_server_close(server);
    while (world->socket != NULL) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    for (int turn = 0; turn < 4; turn++) {
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    web_server_free(server);
}

static void say(struct world *world, const char *text)
{
    assert_true(web_socket_send(world->socket, text, strlen(text)));
}

/* ---- What the link tells --------------------------------------------------------------------- */

static bool may_send(void *userdata)
{
    const struct world *world = userdata;

    return world->may_send;
}

static void on_wanted(void *userdata, bool is_wanted)
{
    struct world *world = userdata;

    world->wanted = is_wanted ? world->wanted + 1 : 0;
    world->unwanted += !is_wanted;
}

static char *list(void *userdata)
{
    return strdup("{\"type\":\"setSubscriptionList\",\"subscriptions\":[]}");
}

static void display(void *userdata, const char *name, struct session_id *ret_session,
                    enum stage *ret_stage)
{
    *ret_session = (struct session_id){true, 7};
    *ret_stage = STAGE_WELCOME;
}

static void on_report(void *userdata, json_t *report)
{
    struct world *world = userdata;

    assert_non_null(json_object_get(report, "cpuUsage"));
    world->reports++;
}

static void on_detection(void *userdata, json_t *message)
{
    struct world *world = userdata;

    assert_non_null(message);
    world->others++;
}

static void on_patch(void *userdata, json_t *message, uint64_t ticket)
{
    struct world *world = userdata;

    assert_non_null(message);
    world->ticket = ticket;
}

static void on_online(void *userdata, bool is_online, const char *reason)
{
    struct world *world = userdata;

    world->online += is_online;
    world->offline += !is_online;
    (void)snprintf(world->reason, sizeof(world->reason), "%s", is_online ? "" : reason);
}

static void on_event(void *userdata, const char *name, json_t *fields)
{
    struct world *world = userdata;

    assert_non_null(fields);
    world->failed += strcmp(name, "connection-failed") == 0;
    world->refused += strcmp(name, "message-refused") == 0;
    json_decref(fields);
}

static void on_closed(void *userdata)
{
    struct world *world = userdata;

    world->closed++;
    world->link = NULL;
}

/* ---- The test -------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    (void)uv_loop_init(&world->loop);
    world->may_send = true;
    open_worker(world);
    (void)snprintf(world->url, sizeof(world->url), "ws://127.0.0.1:%d/", world->port);
    world->config = (struct link_config){.loop = &world->loop,
                                         .url = world->url,
                                         .grace = SPAN_S(3600),
                                         .silence = SPAN_S(3600),
                                         .connections = &world->connections,
                                         .calls = {.may_send = may_send,
                                                   .on_wanted = on_wanted,
                                                   .list = list,
                                                   .display = display,
                                                   .on_report = on_report,
                                                   .on_detection = on_detection,
                                                   .on_patch_session = on_patch,
                                                   .on_online = on_online,
                                                   .on_event = on_event},
                                         .userdata = world};
    *state = world;
    return 0;
}

static const char all[] = "setSubscriptionList setSessionIdd setProgressionStaged ";

static void set_list(struct world *world)
{
    const struct subscription one = {.identifier = "d;c", .model_id = 1};

    assert_int_equal(link_set_list(world->link, &one, 1, 5, false), 0);
}

static void begin(struct world *world)
{
    assert_int_equal(link_open(&world->link, &world->config, NULL), 0);
    set_list(world);
}

#define run_until(world, condition)                                                                \
    do {                                                                                           \
        while (!(condition)) {                                                                     \
            (void)uv_run(&(world)->loop, UV_RUN_ONCE);                                             \
        }                                                                                          \
    } while (0)

static int tear_down(void **state)
{
    struct world *world = *state;

    if (world->link != NULL) {
        link_close(world->link, true, on_closed);
        run_until(world, world->link == NULL);
    }
    if (world->server != NULL) {
        close_worker(world);
    }
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    free(world);
    return 0;
}

static void a_worker_is_sent_the_list_the_session_and_the_stage(void **state)
{
    struct world *world = *state;

    begin(world);
    run_until(world, strlen(world->got) >= strlen(all) && world->reports > 0);
    assert_string_equal(world->got, all);
    assert_int_equal(world->online, 1);
    assert_false(link_is_in_sync(world->link));
}

static void a_lost_connection_is_opened_again_and_sent_everything(void **state)
{
    struct world *world = *state;

    begin(world);
    run_until(world, strlen(world->got) >= strlen(all) && world->reports > 0);
    world->got[0] = '\0';
    web_socket_close(world->socket, 1000, "");
    run_until(world, strlen(world->got) >= strlen(all) && world->reports > 1);
    assert_string_equal(world->got, all);
    assert_int_equal(world->offline, 0);
    assert_int_equal(world->failed, 0);
    assert_int_equal(link_counters(world->link)->reconnects, 1);
}

static void a_worker_that_is_away_for_longer_than_the_grace_is_offline(void **state)
{
    struct world *world = *state;

    world->config.grace = SPAN_MS(200);
    begin(world);
    run_until(world, world->reports > 0);
    close_worker(world);
    run_until(world, world->offline > 0);
    assert_non_null(strstr(world->reason, "refused"));
    assert_true(world->failed > 0);
    assert_int_equal(world->unwanted, 1);
    world->got[0] = '\0';
    open_worker(world);
    run_until(world, world->online > 1);
    assert_int_equal(world->offline, 1);
    assert_true(world->wanted > 0);
    assert_string_equal(world->got, ""); /* what it was to get before is not sent */
    set_list(world);
    run_until(world, strlen(world->got) >= strlen(all));
    assert_string_equal(world->got, all);
}

/* It may have got the list. */
static void a_worker_that_goes_before_it_reports_wants_its_list_anew(void **state)
{
    struct world *world = *state;

    world->config.grace = SPAN_MS(1);
    begin(world);
    close_worker(world);
    run_until(world, world->offline > 0);
    world->is_silent = true;
    open_worker(world);
    run_until(world, world->wanted == 1);
    set_list(world);
    world->unwanted = 0;
    close_worker(world);
    run_until(world, world->unwanted == 1);
    world->got[0] = '\0';
    open_worker(world);
    run_until(world, world->wanted == 1);
    assert_string_equal(world->got, "");
    assert_int_equal(world->offline, 1);
}

static void a_worker_that_hangs_up_says_why(void **state)
{
    struct world *world = *state;

    world->config.grace = SPAN_MS(1);
    begin(world);
    for (unsigned i = 1; i <= 2; i++) { /* after the second one in a row there is a pause */
        run_until(world, world->reports == i && world->socket != NULL);
        web_socket_close(world->socket, 4001, "another backend\nowns this worker");
        run_until(world, world->socket == NULL);
    }
    run_until(world, world->reason[0] != '\0'); /* it may have been offline before, too */
    assert_string_equal(world->reason, "the worker closed the connection with code 4001: another "
                                       "backend?owns this worker");
}

static void a_worker_that_was_never_there_is_offline_after_the_grace(void **state)
{
    struct world *world = *state;

    close_worker(world);
    world->config.grace = SPAN_MS(50);
    begin(world);
    run_until(world, world->offline > 0);
    assert_int_equal(world->online, 0);
}

static void a_silent_worker_is_offline_and_its_connection_is_cut(void **state)
{
    struct world *world = *state;

    world->config.silence = SPAN_MS(100);
    begin(world);
    world->is_silent = true;
    run_until(world, world->offline > 0);
    assert_string_equal(world->reason, "no stateReport for 0.1 s");
    run_until(world, world->opened > 1 && world->socket != NULL);
    say(world, REPORT);
    run_until(world, world->online > 0);
}

/* Each connection of a worker that hangs up at once counts as a failure. */
static void a_worker_that_hangs_up_at_once_is_not_tried_without_a_pause(void **state)
{
    struct world *world = *state;
    uint64_t begun;

    world->is_silent = true;
    begin(world);
    begun = uv_now(&world->loop);
    for (unsigned i = 1; i <= 3; i++) {
        run_until(world, world->opened == i && world->socket != NULL);
        web_socket_close(world->socket, 1000, "");
        run_until(world, world->socket == NULL);
    }
    run_until(world, world->opened == 4);
    assert_true(uv_now(&world->loop) - begun >= 50 + 100 + 200); /* half of 0.1, 0.2, 0.4 s */
}

/* Two backends that fight for a worker would else connect hundreds of times a second. */
static void a_worker_that_hangs_up_after_each_report_is_not_tried_without_a_pause(void **state)
{
    struct world *world = *state;
    uint64_t begun;

    begin(world);
    begun = uv_now(&world->loop);
    for (unsigned i = 1; i <= 5; i++) {
        run_until(world, world->reports == i && world->socket != NULL);
        web_socket_close(world->socket, 1000, "");
        run_until(world, world->socket == NULL);
    }
    run_until(world, world->opened == 6);
    assert_true(uv_now(&world->loop) - begun >= 50 + 100 + 200); /* half of 0.1, 0.2, 0.4 s */
}

static void what_cannot_be_used_is_counted_and_the_connection_goes_on(void **state)
{
    static const char *const bad[] = {
        "no JSON", "[]", "{\"type\":\"whatIsThis\"}", "{\"type\":\"stateReport\"}",
        "{\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"x\"}"};
    struct world *world = *state;

    begin(world);
    run_until(world, world->reports > 0);
    for (size_t i = 0; i < 5; i++) {
        say(world, bad[i]);
    }
    say(world,
        "{\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"d;c\",\"timestamp\":\"t\","
        "\"data\":{\"modelId\":1,\"modelName\":\"M\",\"detection\":{}}}");
    run_until(world, world->others > 0);
    assert_int_equal(link_counters(world->link)->refused, 5);
    assert_int_equal(world->refused, 3); /* the first, second and fourth */
    assert_int_equal(world->opened, 1);
    assert_int_equal(link_counters(world->link)->detections, 1);
}

static void without_the_lease_there_is_no_connection(void **state)
{
    struct world *world = *state;

    world->may_send = false;
    world->config.grace = SPAN_MS(300);
    begin(world);
    run_until(world, world->offline > 0);
    assert_int_equal(world->opened, 0);
    world->may_send = true;
    run_until(world, world->opened > 0);
}

static void when_the_lease_is_lost_nothing_more_is_sent(void **state)
{
    struct world *world = *state;

    begin(world);
    run_until(world, strlen(world->got) >= strlen(all));
    world->got[0] = '\0';
    world->may_send = false;
    assert_int_equal(link_set_list(world->link, NULL, 0, 6, false), 0);
    run_until(world, world->socket == NULL);
    assert_string_equal(world->got, "");
}

static void closing_says_goodbye(void **state)
{
    struct world *world = *state;

    begin(world);
    run_until(world, world->reports > 0);
    link_close(world->link, false, on_closed);
    run_until(world, world->closed > 0);
    run_until(world, world->socket == NULL);
    assert_int_equal(world->offline, 0);
}

static void a_patch_is_answered_on_its_own_connection_only(void **state)
{
    static const char patch[] = "{\"type\":\"patchSession\",\"sessionId\":7,\"data\":{}}";
    struct world *world = *state;

    begin(world);
    run_until(world, strlen(world->got) >= strlen(all));
    say(world, patch);
    run_until(world, world->ticket != 0);
    world->got[0] = '\0';
    assert_true(link_answer_patch(world->link, world->ticket, 7, true, "updated"));
    run_until(world, world->got[0] != '\0');
    assert_string_equal(world->got, "patchSessionResultupdated ");
    web_socket_close(world->socket, 1000, "");
    run_until(world, world->opened > 1);
    run_until(world, world->connections > 1);
    assert_false(link_answer_patch(world->link, world->ticket, 7, true, "updated"));
}

static void the_token_is_shown_as_a_bearer(void **state)
{
    struct world *world = *state;

    world->needs_token = true;
    begin(world);
    run_until(world, world->failed > 0);
    assert_int_equal(world->opened, 0);
    link_close(world->link, true, on_closed);
    run_until(world, world->closed > 0);
    world->config.token = "token-of-16-bytes";
    begin(world);
    run_until(world, world->reports > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_is_sent_the_list_the_session_and_the_stage),
        TEST(a_lost_connection_is_opened_again_and_sent_everything),
        TEST(a_worker_that_is_away_for_longer_than_the_grace_is_offline),
        TEST(a_worker_that_goes_before_it_reports_wants_its_list_anew),
        TEST(a_worker_that_hangs_up_says_why),
        TEST(a_worker_that_was_never_there_is_offline_after_the_grace),
        TEST(a_silent_worker_is_offline_and_its_connection_is_cut),
        TEST(a_worker_that_hangs_up_at_once_is_not_tried_without_a_pause),
        TEST(a_worker_that_hangs_up_after_each_report_is_not_tried_without_a_pause),
        TEST(what_cannot_be_used_is_counted_and_the_connection_goes_on),
        TEST(without_the_lease_there_is_no_connection),
        TEST(when_the_lease_is_lost_nothing_more_is_sent),
        TEST(closing_says_goodbye),
        TEST(a_patch_is_answered_on_its_own_connection_only),
        TEST(the_token_is_shown_as_a_bearer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
