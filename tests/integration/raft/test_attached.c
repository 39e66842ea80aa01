/* Processes that take part through one node, as through their host's agent: each leads, hands on,
 * leaves and comes back by itself. */
#include "lib/await.h"
#include "lib/process.h"
#include "provider/provider.h"
#include "provider/raft/raft_provider.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MANY = 50 };

struct candidacy {
    struct provider_election *election;
    struct lease_cell *cell;
    int acquired, lost, drains, stops;
    char leader[BATON_NAME_MAX]; /* heard last */
};

/* A process, as its agent sees it. */
struct process {
    struct provider *handle;
    struct candidacy of[MANY];
    uint64_t session; /* reported last */
    int reports;
    bool is_closed;
};

struct reply {
    int count, code;
    char message[BATON_ERROR_MESSAGE_MAX];
};

static char folder[64];
static int ports[3];
static uv_loop_t loop;
static struct provider *node, *others[2]; /* `others` are opened by one test */
static bool is_node_closed;
static struct process a, b;

/* ---- Waiting --------------------------------------------------------------------------------- */

static void on_wake(uv_timer_t *timer)
{
}

/* ---- The node -------------------------------------------------------------------------------- */

static void on_node_closed(void *userdata)
{
    is_node_closed = true;
}

static void open_one(struct provider **ret, int number, const char *peers)
{
    char url[512], name[8], data[80];
    const struct provider_config config = {.loop = &loop, .url = url, .node = name};

    (void)snprintf(name, sizeof(name), "n%d", number);
    (void)snprintf(data, sizeof(data), "%s/%s", folder, name);
    (void)mkdir(data, 0700);
    (void)snprintf(url, sizeof(url),
                   "raft://127.0.0.1:%d?group=attached&preset=fast&heartbeat-timeout=3s&lease=3s"
                   "&guardian=no&data=%s&peers=%s",
                   ports[number], data, peers);
    ASSERT_OK(provider_open(ret, &config, failure));
}

/* The group is this node. */
static void open_node(void)
{
    char peers[64];

    (void)snprintf(peers, sizeof(peers), "n0@127.0.0.1:%d", ports[0]);
    open_one(&node, 0, peers);
}

static void close_one(struct provider **one)
{
    if (*one) {
        is_node_closed = false;
        (*one)->ops->close(*one, on_node_closed, NULL);
        AWAIT(is_node_closed);
        *one = NULL;
    }
}

static void close_node(void)
{
    close_one(&node);
}

static void open_three(void)
{
    char peers[128];

    close_node();
    (void)snprintf(peers, sizeof(peers), "n0@127.0.0.1:%d,n1@127.0.0.1:%d,n2@127.0.0.1:%d",
                   ports[0], ports[1], ports[2]);
    open_one(&node, 0, peers);
    open_one(&others[0], 1, peers);
    open_one(&others[1], 2, peers);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void on_session(void *userdata, uint64_t session)
{
    struct process *process = userdata;

    process->session = session;
    process->reports++;
}

static void attach_at(struct provider *there, struct process *process, const char *name,
                      const char *secret, uint64_t session)
{
    uint8_t bytes[PROVIDER_SECRET_BYTES] = {0};
    const struct provider_process about = {.name = name,
                                           .metadata = "{\"is\":\"a test\"}",
                                           .secret = bytes,
                                           .session = session,
                                           .on_session = on_session,
                                           .userdata = process};

    memset(process, 0, sizeof(*process));
    (void)snprintf((char *)bytes, sizeof(bytes), "%s", secret);
    ASSERT_OK(provider_attach(&process->handle, there, NULL, &about, failure));
    assert_int_equal(process->reports, 0); /* not within the call */
}

static void attach(struct process *process, const char *name, const char *secret, uint64_t session)
{
    attach_at(node, process, name, secret, session);
}

static void on_event(void *userdata, const struct baton_event *event)
{
    struct candidacy *candidacy = userdata;

    candidacy->acquired += event->type == BATON_EVENT_ACQUIRED;
    candidacy->lost += event->type == BATON_EVENT_LOST;
    candidacy->drains += event->type == BATON_EVENT_DRAIN;
    candidacy->stops += event->type == BATON_EVENT_STOPPED;
    if (event->type == BATON_EVENT_LEADER) {
        (void)snprintf(candidacy->leader, sizeof(candidacy->leader), "%s", event->member.name);
    }
}

static const char *name_of(int number)
{
    static char name[16];

    (void)snprintf(name, sizeof(name), "e%d", number);
    return name;
}

static void campaign_again(struct process *process, int number, uint64_t known_epoch, bool acts)
{
    struct candidacy *candidacy = &process->of[number];
    const struct provider_campaign campaign = {.election = name_of(number),
                                               .eligible = true,
                                               .cell = lease_cell_new(),
                                               .on_event = on_event,
                                               .userdata = candidacy,
                                               .known_epoch = known_epoch,
                                               .acts = acts};

    candidacy->cell = campaign.cell;
    ASSERT_OK(
        process->handle->ops->campaign(&candidacy->election, process->handle, &campaign, failure));
}

static void campaign(struct process *process, int number)
{
    campaign_again(process, number, 0, false);
}

/* 0: it does not lead. */
static uint64_t led(const struct process *process, int number)
{
    uint64_t epoch = 0;

    return lease_cell_is_leader(process->of[number].cell, &epoch) ? epoch : 0;
}

static void on_closed(void *userdata)
{
    ((struct process *)userdata)->is_closed = true;
}

/* It leads nothing when it has ended, and each election has said so. */
static void await_end(struct process *process)
{
    AWAIT(process->is_closed);
    for (int i = 0; i < MANY; i++) {
        if (process->of[i].cell) {
            assert_int_equal(process->of[i].stops, 1);
            lease_cell_free(process->of[i].cell);
        }
    }
    process->handle = NULL;
}

static void close_process(struct process *process)
{
    process->handle->ops->close(process->handle, on_closed, process);
    for (int i = 0; i < MANY; i++) {
        assert_true(!process->of[i].cell || !lease_cell_is_leader(process->of[i].cell, NULL));
    }
    await_end(process);
}

static void detach(struct process *process)
{
    provider_detach(process->handle, on_closed, process);
    for (int i = 0; i < MANY; i++) {
        assert_true(!process->of[i].cell || !lease_cell_is_leader(process->of[i].cell, NULL));
        assert_int_equal(process->of[i].lost, 0); /* it may act on */
    }
    await_end(process);
}

/* ---- What the group knows -------------------------------------------------------------------- */

static struct provider_election_state known;
static char known_leader[BATON_NAME_MAX];
static size_t known_count;

static void on_elections(void *userdata, int code, const struct provider_election_state *elections,
                         size_t count)
{
    assert_int_equal(code, BATON_OK);
    memset(&known, 0, sizeof(known));
    known_count = count;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || strcmp(elections[i - 1].name, elections[i].name) < 0);
        if (strcmp(elections[i].name, userdata) == 0) {
            known = elections[i];
            (void)snprintf(known_leader, sizeof(known_leader), "%s", elections[i].leader);
        }
    }
}

/* Into `known`; its strings have ended. */
static const struct provider_election_state *look(int number)
{
    ASSERT_OK(node->ops->elections(node, on_elections, (void *)name_of(number), failure));
    return &known;
}

static void on_done(void *userdata, int code, const struct baton_error *error)
{
    struct reply *reply = userdata;

    reply->count++;
    reply->code = code;
    (void)snprintf(reply->message, sizeof(reply->message), "%s", error ? error->message : "");
}

static instant soon(void)
{
    return instant_add(clock_now(), SPAN_S(PATIENCE_S));
}

/* `a` leads "e0", and `b` waits for it. Its epoch. */
static uint64_t begin(void)
{
    attach(&a, "a", "secret of a", 0);
    campaign(&a, 0);
    AWAIT(led(&a, 0));
    attach(&b, "b", "secret of b", 0);
    campaign(&b, 0);
    AWAIT(look(0)->waiting == 1);
    return led(&a, 0);
}

static int set_up(void **state)
{
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    process_make_folder(folder, sizeof(folder));
    process_free_ports(ports, 3);
    open_node();
    return 0;
}

static int tear_down(void **state)
{
    if (a.handle) {
        close_process(&a);
    }
    if (b.handle) {
        close_process(&b);
    }
    close_one(&others[0]);
    close_one(&others[1]);
    close_node();
    process_remove_folder(folder);
    return 0;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void processes_of_one_node_lead_different_elections(void **state)
{
    struct baton_member leader;
    uint64_t epoch;

    attach(&a, "a", "secret of a", 0);
    attach(&b, "b", "secret of b", 0);
    campaign(&a, 0);
    campaign(&b, 1);
    AWAIT(led(&a, 0) && led(&b, 1));
    campaign(&b, 0);
    campaign(&a, 1);
    AWAIT(look(0)->waiting == 1 && look(1)->waiting == 1);
    assert_true(led(&a, 0) && led(&b, 1) && !led(&b, 0) && !led(&a, 1));
    assert_int_equal(a.reports, 1);
    assert_int_not_equal(a.session, b.session);
    b.of[0].election->ops->leader(b.of[0].election, &leader, &epoch);
    assert_string_equal(leader.name, "a");
    assert_false(leader.is_self);
    assert_int_equal(epoch, led(&a, 0));
}

static void a_process_that_enters_hears_who_leads(void **state)
{
    (void)begin();
    AWAIT(strcmp(b.of[0].leader, "a") == 0);
}

static void the_elections_of_a_group_are_listed(void **state)
{
    (void)begin();
    campaign(&b, 1);
    AWAIT(led(&b, 1));
    assert_int_equal(look(0)->epoch, led(&a, 0));
    assert_int_equal(known_count, 2);
    assert_string_equal(known_leader, "a");
    assert_true(known.left.ns > 0);
    assert_int_equal(look(1)->waiting, 0);
    assert_string_equal(known_leader, "b");
}

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    assert_int_equal(code, BATON_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        bool is_a = strcmp(members[i].name, "a") == 0;
        assert_int_equal(members[i].is_self, is_a);
        assert_int_equal(members[i].role == BATON_ROLE_LEADER, is_a);
        assert_true(members[i].is_alive);
        assert_string_equal(members[i].metadata, "{\"is\":\"a test\"}");
    }
    *(bool *)userdata = true;
}

static void members_of_an_election_are_its_processes(void **state)
{
    bool was_called = false;

    (void)begin();
    ASSERT_OK(a.of[0].election->ops->members(a.of[0].election, on_members, &was_called, failure));
    assert_true(was_called);
}

static void a_closed_process_is_followed_in_all_its_elections_by_one_entry(void **state)
{
    attach(&a, "a", "secret of a", 0);
    attach(&b, "b", "secret of b", 0);
    for (int i = 0; i < MANY; i++) {
        campaign(&a, i);
        AWAIT(led(&a, i));
        campaign(&b, i);
        AWAIT(look(i)->waiting == 1);
    }
    close_process(&a);
    for (int i = 0; i < MANY; i++) {
        AWAIT(led(&b, i));
        assert_int_equal(led(&b, i), led(&b, 0));
    }
}

static void a_detached_process_comes_back_and_leads_on(void **state)
{
    uint64_t epoch, session;

    epoch = begin();
    session = a.session;
    detach(&a);
    assert_int_equal(look(0)->epoch, epoch);
    attach(&a, "a", "secret of a", session);
    campaign_again(&a, 0, epoch, true);
    AWAIT(led(&a, 0));
    assert_int_equal(led(&a, 0), epoch);
    assert_int_equal(a.session, session);
    assert_int_equal(a.reports, 1);
    assert_int_equal(b.of[0].acquired, 0);
}

static void a_process_leads_on_when_its_node_has_started_again(void **state)
{
    uint64_t epoch, session;

    epoch = begin();
    session = a.session;
    detach(&a);
    detach(&b);
    close_node();
    open_node();
    attach(&a, "a", "secret of a", session);
    campaign_again(&a, 0, epoch, true);
    AWAIT(led(&a, 0));
    assert_int_equal(led(&a, 0), epoch);
    assert_int_equal(a.session, session);
}

/* With that session's number, but another secret: it waits until the session's end. */
static void a_wrong_secret_resumes_no_session(void **state)
{
    uint64_t epoch, session;

    attach(&a, "a", "secret of a", 0);
    campaign(&a, 0);
    AWAIT(led(&a, 0));
    epoch = led(&a, 0);
    session = a.session;
    detach(&a);
    attach(&b, "a", "secret of b", session);
    campaign_again(&b, 0, epoch, true);
    AWAIT(b.session != 0);
    assert_int_not_equal(b.session, session);
    assert_int_equal(b.reports, 1);
    assert_int_equal(look(0)->epoch, epoch);
    assert_int_equal(led(&b, 0), 0);
    AWAIT(led(&b, 0));
    assert_true(led(&b, 0) > epoch);
}

static void a_session_that_has_ended_is_followed_by_a_new_one(void **state)
{
    uint64_t session;

    (void)begin();
    session = a.session;
    close_process(&a);
    AWAIT(led(&b, 0));
    attach(&a, "a", "secret of a", session);
    AWAIT(a.session != 0);
    assert_int_not_equal(a.session, session);
}

/* The node before must neither renew the session nor order for it: it hears nothing of the process.
 */
static void a_process_that_comes_back_at_another_node_leads_on_there_alone(void **state)
{
    uint64_t epoch, session;

    open_three();
    attach_at(others[1], &b, "other", "secret", 0); /* the node takes part from now on */
    attach_at(others[0], &a, "a", "secret of a", 0);
    campaign(&a, 0);
    AWAIT(led(&a, 0) && b.session != 0);
    epoch = led(&a, 0);
    session = a.session;
    close_process(&b);
    attach_at(others[1], &b, "a", "secret of a", session);
    campaign_again(&b, 0, epoch, true);
    AWAIT(b.session != 0 && a.session != session);
    assert_int_equal(b.session, session);
    AWAIT(led(&b, 0));
    assert_int_equal(led(&b, 0), epoch);
    assert_int_equal(led(&a, 0), 0);
    close_process(&a);
    assert_int_equal(led(&b, 0), epoch);
}

/* The other one has it already: one of two agents is wrong about the process. */
static void a_session_in_use_is_not_resumed(void **state)
{
    (void)begin();
    close_process(&b);
    attach(&b, "a", "secret of a", a.session);
    AWAIT(b.session != 0);
    assert_int_not_equal(b.session, a.session);
    assert_true(led(&a, 0));
}

static void an_epoch_given_up_while_detached_is_handed_on(void **state)
{
    uint64_t epoch, session;

    epoch = begin();
    session = a.session;
    detach(&a);
    attach(&a, "a", "secret of a", session);
    campaign_again(&a, 0, epoch, false);
    AWAIT(led(&b, 0));
    assert_true(led(&b, 0) > epoch);
    assert_int_equal(a.of[0].acquired, 0);
    assert_int_equal(a.session, session);
}

/* The process may act by an earlier agent's lease until that has ended. */
static void what_a_resumed_session_holds_is_handed_on_if_it_is_not_claimed(void **state)
{
    uint64_t epoch, session;

    epoch = begin();
    session = a.session;
    detach(&a);
    attach(&a, "a", "secret of a", session);
    AWAIT(a.session == session);
    assert_int_equal(look(0)->epoch, epoch);
    AWAIT(led(&b, 0));
    assert_int_equal(a.session, session);
}

static void passing_waits_for_the_holder_to_drain(void **state)
{
    struct reply reply = {0};

    (void)begin();
    ASSERT_OK(node->ops->ask_pass(node, "e0", "b", soon(), on_done, &reply, failure));
    AWAIT(a.of[0].drains == 1);
    assert_true(led(&a, 0));
    a.of[0].election->ops->drained(a.of[0].election);
    assert_false(led(&a, 0));
    AWAIT(led(&b, 0) && reply.count == 1);
    assert_int_equal(reply.code, BATON_OK);
}

/* It acts by its cell: when that is void, it has stopped. */
static void the_node_itself_is_waited_for_no_longer_than_a_lease(void **state)
{
    static struct process own;
    struct reply reply = {0};

    own = (struct process){.handle = node};
    campaign(&own, 0);
    AWAIT(led(&own, 0));
    attach(&b, "b", "secret of b", 0);
    campaign(&b, 0);
    AWAIT(look(0)->waiting == 1);
    ASSERT_OK(node->ops->ask_pass(node, "e0", "b", soon(), on_done, &reply, failure));
    AWAIT(own.of[0].drains == 1);
    AWAIT(led(&b, 0) && reply.count == 1);
    assert_int_equal(reply.code, BATON_OK);
    assert_int_equal(own.of[0].lost, 1);
    own.of[0].election->ops->leave(own.of[0].election);
    AWAIT(own.of[0].stops == 1);
    lease_cell_free(own.of[0].cell);
}

static void passing_to_a_process_that_does_not_wait_is_refused(void **state)
{
    struct reply reply = {0};
    struct baton_error error;

    (void)begin();
    assert_int_equal(node->ops->ask_pass(node, "e0", "c", soon(), on_done, &reply, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "\"c\""));
    assert_non_null(strstr(error.message, "b"));
    assert_int_equal(node->ops->ask_pass(node, "e7", "b", soon(), on_done, &reply, &error),
                     BATON_ENOENT);
    assert_int_equal(reply.count, 0);
}

static void passing_that_takes_too_long_is_reported(void **state)
{
    struct reply reply = {0};

    (void)begin();
    ASSERT_OK(node->ops->ask_pass(node, "e0", NULL, instant_add(clock_now(), SPAN_MS(300)), on_done,
                                  &reply, failure));
    AWAIT(reply.count == 1);
    assert_int_equal(reply.code, BATON_ETIMEDOUT);
    assert_true(led(&a, 0));
}

static void requests_under_way_end_with_the_node(void **state)
{
    struct reply reply = {0};

    (void)begin();
    ASSERT_OK(node->ops->ask_pass(node, "e0", "b", soon(), on_done, &reply, failure));
    detach(&a);
    detach(&b);
    close_node();
    assert_int_equal(reply.count, 1);
    assert_int_equal(reply.code, BATON_ECANCELED);
}

static void a_process_is_cordoned_by_its_name(void **state)
{
    struct reply reply = {0};

    (void)begin();
    ASSERT_OK(node->ops->ask_eligible(node, "e0", "a", false, soon(), on_done, &reply, failure));
    AWAIT(reply.count == 1 && a.of[0].drains == 1);
    assert_int_equal(reply.code, BATON_OK);
    a.of[0].election->ops->drained(a.of[0].election);
    AWAIT(led(&b, 0));
    assert_int_equal(look(0)->waiting, 0);
    ASSERT_OK(node->ops->ask_eligible(node, "e0", "a", true, soon(), on_done, &reply, failure));
    AWAIT(look(0)->waiting == 1);
}

static int begin_loop(void **state)
{
    static uv_timer_t wake;

    (void)signal(SIGPIPE, SIG_IGN); /* a peer's node is closed at any moment */
    (void)uv_timer_init(&loop, &wake);
    return uv_timer_start(&wake, on_wake, 1, 1); /* to look at conditions */
}

static json_int_t index_of(const char *which)
{
    json_t *status = raft_provider_status(node);
    json_int_t index = json_integer_value(json_object_get(status, which));

    json_decref(status);
    return index;
}

/* Each change is an entry, and a checkpoint comes once a minute. */
static void a_log_of_many_small_orders_is_compacted_before_its_time(void **state)
{
    attach(&a, "a", "secret of a", 0);
    for (int i = 0; i < MANY; i++) {
        campaign(&a, i);
    }
    for (bool may_lead = false; index_of("first_index") == 1; may_lead = !may_lead) {
        assert_true(index_of("last_index") < 100000);
        for (int i = 0; i < MANY; i++) {
            struct provider_election *election = a.of[i].election;
            ASSERT_OK(election->ops->set_eligible(election, may_lead, failure));
        }
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(processes_of_one_node_lead_different_elections),
        CASE(a_process_that_enters_hears_who_leads),
        CASE(the_elections_of_a_group_are_listed),
        CASE(members_of_an_election_are_its_processes),
        CASE(a_closed_process_is_followed_in_all_its_elections_by_one_entry),
        CASE(a_detached_process_comes_back_and_leads_on),
        CASE(a_process_leads_on_when_its_node_has_started_again),
        CASE(a_wrong_secret_resumes_no_session),
        CASE(a_session_that_has_ended_is_followed_by_a_new_one),
        CASE(a_session_in_use_is_not_resumed),
        CASE(a_process_that_comes_back_at_another_node_leads_on_there_alone),
        CASE(an_epoch_given_up_while_detached_is_handed_on),
        CASE(what_a_resumed_session_holds_is_handed_on_if_it_is_not_claimed),
        CASE(passing_waits_for_the_holder_to_drain),
        CASE(the_node_itself_is_waited_for_no_longer_than_a_lease),
        CASE(passing_to_a_process_that_does_not_wait_is_refused),
        CASE(passing_that_takes_too_long_is_reported),
        CASE(requests_under_way_end_with_the_node),
        CASE(a_process_is_cordoned_by_its_name),
        CASE(a_log_of_many_small_orders_is_compacted_before_its_time),
    };
#undef CASE
    return uv_loop_init(&loop) == 0 ? cmocka_run_group_tests(tests, begin_loop, NULL) : 1;
}
