/* libbaton through an agent that is replaced, hangs, dies, or is no agent. */
#include "lib/process.h"
#include "provider/agent_host.h"
#include "provider/group.h"
#include "provider/listener.h"

#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LONG  "30s" /* no pause of a busy machine outlasts it */
#define SHORT "1s"  /* its end is waited for */

static int set_up(void **state)
{
    struct agent_host *host = calloc(1, sizeof(*host));

    assert_non_null(host);
    *host = (struct agent_host){.program = BATON_PROGRAM, .lease = LONG};
    *state = host;
    return 0;
}

static int tear_down(void **state)
{
    struct agent_host *host = *state;

    (void)kill(host->pid, SIGCONT);
    agent_host_end(host);
    free(host);
    return 0;
}

struct member_of_one {
    struct baton *baton;
    struct baton_election *election;
};

static void join(struct member_of_one *ret, const struct agent_host *host, const char *node)
{
    const struct baton_options options = {.size = sizeof(options), .node = node};

    ASSERT_OK(baton_open(&ret->baton, host->url, &options, failure));
    ASSERT_OK(baton_campaign(&ret->election, ret->baton, "race", NULL, failure));
}

static void leadership_outlives_the_agent(void **state)
{
    struct agent_host *host = *state;
    struct member_of_one one;
    uint64_t epoch, now;

    agent_host_begin(host);
    join(&one, host, "one");
    ASSERT_OK(baton_wait_leadership(one.election, -1, failure));
    assert_true(baton_leadership(one.election, &epoch));
    for (int i = 0; i < 3; i++) {
        agent_host_kill(host);
        assert_true(baton_is_leader(one.election));
        agent_host_start(host);
        /* An answer comes by the new connection only. */
        GROUP_AWAIT(baton_put(one.baton, "key", "v", 1, BATON_ANY_REVISION, 0, NULL) == BATON_OK);
    }
    assert_true(baton_leadership(one.election, &now));
    assert_int_equal(now, epoch);
    baton_close(one.baton);
}

static void without_an_agent_the_lease_ends_and_with_the_next_it_begins_anew(void **state)
{
    struct agent_host *host = *state;
    struct member_of_one one;
    uint64_t epoch, now = 0;

    host->lease = SHORT;
    agent_host_begin(host);
    join(&one, host, "one");
    ASSERT_OK(baton_wait_leadership(one.election, -1, failure));
    epoch = baton_epoch(one.election);
    agent_host_kill(host);
    GROUP_AWAIT(!baton_is_leader(one.election));
    GROUP_AWAIT(baton_role(one.election) == BATON_ROLE_FOLLOWER);
    agent_host_start(host);
    GROUP_AWAIT(baton_leadership(one.election, &now) && now > epoch);
    baton_close(one.baton);
}

static void an_agent_that_hangs_costs_the_leadership_and_no_more(void **state)
{
    struct agent_host *host = *state;
    struct member_of_one one;
    uint64_t epoch, now = 0;

    host->lease = SHORT;
    agent_host_begin(host);
    join(&one, host, "one");
    ASSERT_OK(baton_wait_leadership(one.election, -1, failure));
    epoch = baton_epoch(one.election);
    assert_int_equal(kill(host->pid, SIGSTOP), 0);
    GROUP_AWAIT(!baton_is_leader(one.election));
    assert_int_equal(kill(host->pid, SIGCONT), 0);
    GROUP_AWAIT(baton_leadership(one.election, &now) && now > epoch);
    baton_close(one.baton);
}

/* A process that leads until it is killed. */
static int lead(void *userdata)
{
    struct member_of_one one;

    join(&one, userdata, "first");
    ASSERT_OK(baton_wait_leadership(one.election, -1, failure));
    pause();
    return 0;
}

static void a_process_that_is_killed_is_followed_before_its_lease_ends(void **state)
{
    struct agent_host *host = *state;
    struct baton_member leader = {.id = ""};
    struct member_of_one other;
    pid_t first;

    host->lease = "10m"; /* ten times the patience of this test */
    agent_host_begin(host);
    first = process_fork(lead, host);
    join(&other, host, "other");
    GROUP_AWAIT(baton_is_leader(other.election) ||
                (baton_leader(other.election, &leader, NULL, NULL) == BATON_OK &&
                 strcmp(leader.name, "first") == 0));
    if (baton_is_leader(other.election)) { /* it was the first to come */
        GROUP_AWAIT(baton_pass(other.election, "first", -1, NULL) == BATON_OK);
    }
    process_end(first);
    GROUP_AWAIT(baton_is_leader(other.election));
    baton_close(other.baton);
}

/* ---- No agent -------------------------------------------------------------------------------- */

struct impostor {
    const char *answer; /* after {"id":N, of the request, if it has_id */
    bool has_id;
    int listener;
};

static int answer(void *userdata)
{
    const struct impostor *impostor = userdata;
    char hello[4096] = "";

    for (;;) {
        int client = accept(impostor->listener, NULL, NULL);
        const char *id;
        if (client < 0 || read(client, hello, sizeof(hello) - 1) < 0) {
            return 1;
        }
        id = strstr(hello, "\"id\":");
        if (impostor->has_id) {
            (void)dprintf(client, "{\"id\":%d,", id ? atoi(id + strlen("\"id\":")) : 0);
        }
        (void)dprintf(client, "%s", impostor->answer);
        (void)close(client);
    }
}

static void what_is_no_agent_is_reported_and_tried_again(void **state)
{
    static const struct {
        const char *answer, *wanted;
    } rows[] = {
        {"HTTP/1.1 400 no\r\n\r\n", "agent at"},
        {"\"ok\":false,\"code\":\"EAUTH\",\"error\":\"uid 7 may not\"}\n", "uid 7 may not"},
        {"\"ok\":true}\n", "lifetime_ms"},
        {"\"ok\":true,\"lifetime_ms\":-1,\"renew_ms\":1e300}\n", "lifetime_ms"},
        {"{\"ok\":false,\"code\":\"EBUSY\",\"error\":\"as many clients\"}\n", "as many clients"},
        {"", "ended by the peer"},
    };
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct agent_host *host = *state;
    struct listener listener;
    char url[160];

    process_make_folder(host->folder, sizeof(host->folder));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", host->folder);
    (void)snprintf(url, sizeof(url), "agent:%s", address.sun_path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct impostor impostor = {rows[i].answer, rows[i].answer[0] == '"',
                                    socket(AF_UNIX, SOCK_STREAM, 0)};
        (void)unlink(address.sun_path);
        assert_int_equal(
            bind(impostor.listener, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(impostor.listener, 16), 0);
        host->pid = process_fork(answer, &impostor);
        (void)close(impostor.listener);
        listener_open(&listener, url, rows[i].wanted);
        listener_await(&listener);
        listener_close(&listener);
        process_end(host->pid);
    }
    host->pid = process_fork(answer, &(struct impostor){"", false, -1});
}

enum { CROWD = 12, CROWD_BYTES = 1000 * 1000 };

/* On the loop's thread each begins, and nothing is written in between. */
static void write_a_crowd(struct baton *baton, const struct baton_value *value, void *userdata)
{
    char key[16];

    for (int i = 0; value->data && i < CROWD; i++) {
        (void)snprintf(key, sizeof(key), "crowd/%02d", i);
        ASSERT_OK(baton_put(baton, key, userdata, CROWD_BYTES, 0, 0, failure));
    }
}

static bool is_crowd_there(struct baton *baton)
{
    struct baton_value *values;
    size_t count = 0;

    if (baton_list(baton, "crowd/", &values, &count, NULL) == BATON_OK) {
        baton_values_free(values, count);
    }
    return count == CROWD;
}

static void more_than_the_connection_has_room_for_is_written_as_the_agent_reads(void **state)
{
    struct agent_host *host = *state;
    char *text = calloc(1, CROWD_BYTES); /* no text: it goes as base64 */
    struct member_of_one one;

    host->provider = "memory:"; /* which takes values of that size */
    agent_host_begin(host);
    join(&one, host, "one");
    ASSERT_OK(baton_watch(NULL, one.baton, "start", write_a_crowd, text, failure));
    ASSERT_OK(baton_put(one.baton, "start", "", 0, 0, 0, failure));
    GROUP_AWAIT(is_crowd_there(one.baton));
    baton_close(one.baton);
    free(text);
}

struct flood {
    const char *text;
    size_t bytes;
    int least, most;  /* what it must write, and what would be without an end */
    _Atomic int code; /* of the put that ended it; 0: it has not come */
    int written;      /* before that */
};

static void write_a_flood(struct baton *baton, const struct baton_value *value, void *userdata)
{
    struct flood *flood = userdata;
    int code = BATON_OK;

    while (value->data && code == BATON_OK && flood->written < flood->most) {
        code = baton_put(baton, "flood", flood->text, flood->bytes, BATON_ANY_REVISION, 0, NULL);
        flood->written += code == BATON_OK;
    }
    flood->code = code;
}

/* In bytes, and in requests, which cost the same however many wait. */
static void what_waits_for_the_agent_has_a_limit(void **state)
{
    struct agent_host *host = *state;
    char *text = calloc(1, CROWD_BYTES);
    struct flood floods[] = {{text, CROWD_BYTES, .least = CROWD, .most = 200},
                             {text, 1, .least = 60000, .most = 100000}};
    struct member_of_one one;
    uint64_t epoch;

    host->provider = "memory:";
    agent_host_begin(host);
    join(&one, host, "one");
    ASSERT_OK(baton_wait_leadership(one.election, -1, failure));
    epoch = baton_epoch(one.election);
    for (int i = 0; i < 2; i++) {
        const char *start = i == 0 ? "large" : "many";
        ASSERT_OK(baton_watch(NULL, one.baton, start, write_a_flood, &floods[i], failure));
        ASSERT_OK(baton_put(one.baton, start, "", 0, 0, 0, failure));
        GROUP_AWAIT(floods[i].code != BATON_OK);
        assert_int_equal(floods[i].code, BATON_EBUSY);
        assert_true(floods[i].written > floods[i].least);
        GROUP_AWAIT(baton_put(one.baton, "after", "", 0, BATON_ANY_REVISION, 0, NULL) == BATON_OK);
    }
    assert_int_equal(baton_epoch(one.election), epoch); /* it was renewed meanwhile */
    baton_close(one.baton);
    free(text);
}

/* The next request to the agent of this kind finds no memory. */
static const char *_Atomic forgotten;

int __real_json_object_set_new(json_t *object, const char *key, json_t *value);
int __wrap_json_object_set_new(json_t *object, const char *key, json_t *value);

int __wrap_json_object_set_new(json_t *object, const char *key, json_t *value)
{
    const char *verb = atomic_load(&forgotten);
    const char *asked = json_string_value(json_object_get(object, "do"));

    if (verb && asked && strcmp(key, "id") == 0 && strcmp(verb, asked) == 0) {
        atomic_store(&forgotten, NULL);
        json_decref(value);
        return -1;
    }
    return __real_json_object_set_new(object, key, value);
}

static void note_value(struct baton *baton, const struct baton_value *value, void *userdata)
{
    atomic_store((_Atomic size_t *)userdata, value->bytes);
}

static void what_the_client_had_no_memory_to_ask_for_is_asked_for_again(void **state)
{
    struct agent_host *host = *state;
    struct member_of_one one;
    _Atomic size_t seen = 0;

    agent_host_begin(host);
    atomic_store(&forgotten, "campaign");
    join(&one, host, "one");
    ASSERT_OK(baton_wait_leadership(one.election, 30000, failure));
    assert_null(atomic_load(&forgotten));

    atomic_store(&forgotten, "watch");
    assert_int_equal(baton_watch(NULL, one.baton, "key", note_value, &seen, NULL), BATON_ENOMEM);
    ASSERT_OK(baton_watch(NULL, one.baton, "key", note_value, &seen, failure));
    ASSERT_OK(baton_put(one.baton, "key", "v", 1, BATON_ANY_REVISION, 0, failure));
    GROUP_AWAIT(atomic_load(&seen) == 1);

    agent_host_kill(host);
    atomic_store(&forgotten, "watch");
    agent_host_start(host);
    GROUP_AWAIT(baton_put(one.baton, "key", "vw", 2, BATON_ANY_REVISION, 0, NULL) == BATON_OK);
    GROUP_AWAIT(atomic_load(&seen) == 2);

    atomic_store(&forgotten, "leave");
    ASSERT_OK(baton_leave(one.election, failure));
    /* Once the agent has confirmed that it was left. */
    GROUP_AWAIT(baton_campaign(&one.election, one.baton, "race", NULL, NULL) == BATON_OK);
    assert_null(atomic_load(&forgotten));
    ASSERT_OK(baton_wait_leadership(one.election, 30000, failure));
    baton_close(one.baton);
}

static void urls_that_name_no_socket_are_refused(void **state)
{
    struct baton_error error;
    struct baton *baton = NULL;

    assert_int_equal(baton_open(&baton, "agent:relative", NULL, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "agent:relative"));
    assert_int_equal(baton_open(&baton, "agent:/run/s?lease=5s", NULL, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "lease"));
    assert_null(baton);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(leadership_outlives_the_agent),
        CASE(without_an_agent_the_lease_ends_and_with_the_next_it_begins_anew),
        CASE(an_agent_that_hangs_costs_the_leadership_and_no_more),
        CASE(a_process_that_is_killed_is_followed_before_its_lease_ends),
        CASE(what_is_no_agent_is_reported_and_tried_again),
        CASE(more_than_the_connection_has_room_for_is_written_as_the_agent_reads),
        CASE(what_waits_for_the_agent_has_a_limit),
        CASE(what_the_client_had_no_memory_to_ask_for_is_asked_for_again),
        cmocka_unit_test(urls_that_name_no_socket_are_refused),
    };

    return cmocka_run_group_tests_name("provider_agent", tests, NULL, NULL);
}
