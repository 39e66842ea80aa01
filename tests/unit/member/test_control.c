/* The control socket: what each command is answered, when, and by whom. The provider is memory:.
 * Two members and their clients share one loop, which the test runs.
 */
#include "cmocka_all.h"
#include "lib/process.h"
#include "member/control.h"
#include "member/handover.h"
#include "member/join.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct part {
    struct member *member;
    struct election *election;
    struct status *status;
    struct member_control *control;
    struct observer observer;
    char path[100];
    bool holds; /* from BATON_EVENT_DRAIN on */
    bool is_draining;
    bool is_closed;
};

struct client {
    int fd;
    char heard[8192];
    size_t bytes;
    bool has_ended; /* the server hung up */
};

static uv_loop_t loop;
static char folder[64];
static struct part a, b;

/* ---- The members ----------------------------------------------------------------------------- */

/* Runs the loop until it holds. */
#define UNTIL(holds)                                                                               \
    do {                                                                                           \
        instant limit_ = instant_add(clock_now(), SPAN_MS(PATIENCE_MS));                           \
        while (!(holds)) {                                                                         \
            assert_true(instant_before(clock_now(), limit_));                                      \
            (void)uv_run(&loop, UV_RUN_NOWAIT);                                                    \
        }                                                                                          \
    } while (0)

static bool leads(const struct part *part)
{
    return election_is_leader(part->election, NULL);
}

static void on_event(struct observer *observer, const struct baton_event *event)
{
    struct part *part = OBSERVER_OF(struct part, observer);

    if (event->type == BATON_EVENT_DRAIN && part->holds) {
        part->is_draining = true;
        handover_hold(part->election);
    }
}

static void enter(struct part *part, const char *node)
{
    const struct provider_config config = {.loop = &loop, .url = "memory:control", .node = node};

    assert_int_equal(member_open(&part->member, &config, NULL), 0);
    part->election = calloc(1, election_bytes("e"));
    assert_int_equal(election_init(part->election, "e", NULL), 0);
    part->observer.on_event = on_event;
    election_observe(part->election, &part->observer);
    part->status = status_new(part->member, part->election, node);
    assert_non_null(part->status);
    (void)snprintf(part->path, sizeof(part->path), "%s/%s", folder, node);
    const struct member_control_config control = {.loop = &loop,
                                                  .path = part->path,
                                                  .member = part->member,
                                                  .election = part->election,
                                                  .status = part->status};
    assert_int_equal(member_control_open(&part->control, &control, NULL), 0);
    assert_int_equal(election_join(part->election, part->member, false, NULL, NULL), 0);
}

static int open_two(void **state)
{
    a = b = (struct part){.member = NULL};
    process_make_folder(folder, sizeof(folder));
    assert_int_equal(uv_loop_init(&loop), 0);
    enter(&a, "a");
    UNTIL(leads(&a));
    enter(&b, "b");
    return 0;
}

static void on_end(void *userdata)
{
    ((struct part *)userdata)->is_closed = true;
}

static void leave(struct part *part)
{
    member_close(part->member, on_end, part);
    UNTIL(part->is_closed);
    member_control_close(part->control);
}

static void end(struct part *part)
{
    status_free(part->status);
    election_fini(part->election);
    free(part->election);
    member_free(part->member);
}

static int close_two(void **state)
{
    leave(&a);
    leave(&b);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    end(&a);
    end(&b);
    assert_int_equal(uv_loop_close(&loop), 0);
    process_remove_folder(folder);
    return 0;
}

/* ---- The clients ----------------------------------------------------------------------------- */

static struct client *client_new(const struct part *part, const char *request)
{
    struct client *client = calloc(1, sizeof(*client));
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", part->path);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client->fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(client->fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    assert_int_equal(send(client->fd, "\n", 1, MSG_NOSIGNAL), 1);
    return client;
}

/* Whether the server has hung up, or has sent this text. */
static bool hears(struct client *client, const char *text)
{
    size_t room = sizeof(client->heard) - 1 - client->bytes;
    ssize_t count = recv(client->fd, client->heard + client->bytes, room, MSG_DONTWAIT);

    if (count > 0) {
        client->bytes += (size_t)count;
    }
    client->has_ended = count == 0;
    return client->has_ended || (text && strstr(client->heard, text));
}

static void client_free(struct client *client)
{
    close(client->fd);
    free(client);
}

/* The one reply of this client, which ends with it. The caller frees it. */
static json_t *reply_of(struct client *client)
{
    json_t *reply;

    UNTIL(hears(client, NULL));
    reply = json_loads(client->heard, 0, NULL);
    assert_non_null(reply);
    client_free(client);
    return reply;
}

static const char *text_of(const json_t *reply, const char *key)
{
    const char *text = json_string_value(json_object_get(reply, key));

    return text ? text : "";
}

static void expect_ok(struct client *client)
{
    json_t *reply = reply_of(client);

    assert_true(json_is_true(json_object_get(reply, "ok")));
    json_decref(reply);
}

static void expect_error(struct client *client, int code, const char *says)
{
    json_t *reply = reply_of(client);

    assert_true(json_is_false(json_object_get(reply, "ok")));
    assert_int_equal(json_integer_value(json_object_get(reply, "code")), code);
    if (!strstr(text_of(reply, "error"), says)) {
        fail_msg("'%s' says nothing of '%s'", text_of(reply, "error"), says);
    }
    json_decref(reply);
}

static void expect_new_leader(struct client *client, const char *name)
{
    json_t *reply = reply_of(client);

    assert_true(json_is_true(json_object_get(reply, "ok")));
    assert_string_equal(text_of(reply, "name"), name);
    assert_int_equal(json_integer_value(json_object_get(reply, "epoch")),
                     election_epoch(b.election));
    json_decref(reply);
}

/* ---- What is known --------------------------------------------------------------------------- */

static void status_and_members_are_those_of_the_process_that_is_asked(void **state)
{
    json_t *of_a = reply_of(client_new(&a, "{\"do\":\"status\"}"));
    json_t *of_b = reply_of(client_new(&b, "{\"do\":\"status\"}"));
    json_t *members = reply_of(client_new(&b, "{\"do\":\"members\"}"));

    assert_true(json_is_true(json_object_get(of_a, "is_leader")));
    assert_true(json_is_false(json_object_get(of_b, "is_leader")));
    assert_string_equal(text_of(json_object_get(of_b, "leader"), "name"), "a");
    assert_int_equal(json_array_size(json_object_get(members, "members")), 2);
    assert_null(json_object_get(members, "leader")); /* the members alone */
    json_decref(of_a);
    json_decref(of_b);
    json_decref(members);
}

static void a_watcher_is_sent_each_event_as_it_comes(void **state)
{
    struct client *watcher = client_new(&a, "{\"do\":\"watch\"}");

    for (int i = 0; i < 100; i++) { /* it has subscribed by then */
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    expect_new_leader(client_new(&a, "{\"do\":\"pass\"}"), "b");
    UNTIL(hears(watcher, "leader-changed"));
    assert_non_null(strstr(watcher->heard, "leadership-lost"));
    assert_false(watcher->has_ended);
    client_free(watcher);
}

/* ---- Handing over ---------------------------------------------------------------------------- */

static void pass_is_answered_when_another_member_leads(void **state)
{
    expect_new_leader(client_new(&a, "{\"do\":\"pass\",\"to\":\"b\"}"), "b");
    assert_true(leads(&b));
    assert_false(leads(&a));
}

static void pass_waits_for_what_holds_and_a_second_one_is_refused_meanwhile(void **state)
{
    struct client *first = client_new(&a, "{\"do\":\"pass\"}");

    a.holds = true;
    UNTIL(a.is_draining);
    expect_error(client_new(&a, "{\"do\":\"pass\"}"), BATON_EBUSY, "already");
    assert_false(hears(first, NULL));
    assert_true(leads(&a));
    handover_release(a.election);
    expect_new_leader(first, "b");
}

static void pass_that_is_held_too_long_is_given_up_and_may_be_asked_again(void **state)
{
    a.holds = true;
    expect_error(client_new(&a, "{\"do\":\"pass\",\"timeout_ms\":200}"), BATON_ETIMEDOUT,
                 "the program did not stop in time");
    assert_true(leads(&a));
    a.holds = false;
    expect_new_leader(client_new(&a, "{\"do\":\"pass\"}"), "b");
}

static void pass_of_a_client_that_has_gone_goes_on(void **state)
{
    struct client *gone = client_new(&a, "{\"do\":\"pass\"}");

    client_free(gone);
    UNTIL(leads(&b));
    expect_error(client_new(&a, "{\"do\":\"pass\"}"), BATON_ENOTLEADER, "b does");
}

static void only_the_leader_passes_and_only_to_a_member(void **state)
{
    expect_error(client_new(&b, "{\"do\":\"pass\"}"), BATON_ENOTLEADER, "a does; ask there");
    expect_error(client_new(&a, "{\"do\":\"pass\",\"to\":\"c\"}"), BATON_EINVAL, "c");
    assert_true(leads(&a));
    expect_new_leader(client_new(&a, "{\"do\":\"pass\"}"), "b"); /* the refusals left nothing */
}

static void a_cordoned_leader_is_succeeded_and_leads_again_once_it_is_uncordoned(void **state)
{
    expect_ok(client_new(&a, "{\"do\":\"cordon\"}"));
    UNTIL(leads(&b));
    expect_ok(client_new(&b, "{\"do\":\"cordon\"}"));
    assert_false(leads(&a) || leads(&b));
    expect_ok(client_new(&a, "{\"do\":\"uncordon\"}"));
    UNTIL(leads(&a));
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void what_cannot_be_done_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *request;
        int code;
        const char *says;
    } rows[] = {
        {"{\"do\":\"dance\"}", BATON_EINVAL, "'dance': no such request"},
        {"{\"to\":\"b\"}", BATON_EINVAL, "no such request"},
        {"{\"do\":5}", BATON_EINVAL, "no such request"},
        {"{\"do\":\"leave\"}", BATON_EINVAL, "name is missing"},
        {"{\"do\":\"leave\",\"member\":\"b\"}", BATON_ENOTSUP, "memory"},
        {"{\"do\":\"join\",\"member\":\"c=127.0.0.1:1\"}", BATON_ENOTSUP, "memory"},
        {"{\"do\":\"isolate\",\"on\":true}", BATON_EAUTH, "not started for tests"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_error(client_new(&a, rows[i].request), rows[i].code, rows[i].says);
    }
    assert_true(leads(&a));
}

/* The text of an error has a limit, and may not be cut inside a character. */
static void a_long_request_is_refused_with_a_text_that_is_utf_8(void **state)
{
    char request[2048] = "{\"do\":\"";

    for (int i = 0; i < 2; i++) {
        size_t used = strlen("{\"do\":\"");
        used += (size_t)snprintf(request + used, 2, "%s", i ? "x" : "");
        for (int k = 0; k < 400; k++) {
            used += (size_t)snprintf(request + used, sizeof(request) - used, "\xe2\x82\xac");
        }
        (void)snprintf(request + used, sizeof(request) - used, "\"}");
        expect_error(client_new(&a, request), BATON_EINVAL, "\xe2\x82\xac");
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(status_and_members_are_those_of_the_process_that_is_asked),
        CASE(a_watcher_is_sent_each_event_as_it_comes),
        CASE(pass_is_answered_when_another_member_leads),
        CASE(pass_waits_for_what_holds_and_a_second_one_is_refused_meanwhile),
        CASE(pass_that_is_held_too_long_is_given_up_and_may_be_asked_again),
        CASE(pass_of_a_client_that_has_gone_goes_on),
        CASE(only_the_leader_passes_and_only_to_a_member),
        CASE(a_cordoned_leader_is_succeeded_and_leads_again_once_it_is_uncordoned),
        CASE(what_cannot_be_done_is_refused_with_the_reason),
        CASE(a_long_request_is_refused_with_a_text_that_is_utf_8),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as programs do: clients hang up */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
