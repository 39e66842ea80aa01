/* Named elections of one group, in three real processes that are killed, stopped and cut off. Each
 * process notes, for each election, when it certainly led: the instants of all can be compared, and
 * the notes outlive kill -9. */
#include "base/clock.h"
#include "cmocka_all.h"
#include "lib/process.h"
#include "provider/provider.h"
#include "provider/raft/raft_provider.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { NODES = 3, ELECTIONS = 300, LEADERSHIPS_MAX = 16, LOOKS_A_COUNT = 20, NOBODY = -1 };

struct leadership {
    uint64_t epoch;
    int64_t first_ns, last_ns;
};

/* Written by the node, except for the two orders to it. */
struct notes {
    _Atomic bool may_lead, is_cut_off; /* orders */
    _Atomic bool leads_log;
    _Atomic int lines; /* elections that every member may lead, as this node knows */
    struct {
        _Atomic uint64_t leads; /* the epoch, as of its latest look; 0: does not */
        _Atomic int count;
        struct leadership seen[LEADERSHIPS_MAX];
    } of[ELECTIONS];
};

struct node {
    int number;
    struct notes *notes;
    struct provider *provider;
    struct provider_election *elections[ELECTIONS];
    struct lease_cell *cells[ELECTIONS];
    bool may_lead, is_cut_off;
    int looks;
};

static char folder[64];
static int ports[NODES];
static bool is_alone; /* n0 is the group */
static pid_t pids[NODES];
static struct notes *notes[NODES];

/* ---- A node ---------------------------------------------------------------------------------- */

static void on_event(void *userdata, const struct baton_event *event)
{
}

/* It led in one epoch before and after, hence all the time between. */
static void note(struct node *node, int election)
{
    int64_t before_ns = clock_now().ns;
    uint64_t epoch = 0;
    bool leads = lease_cell_is_leader(node->cells[election], &epoch);
    int count = node->notes->of[election].count;
    struct leadership *last = &node->notes->of[election].seen[count > 0 ? count - 1 : 0];

    if (leads && (count == 0 || last->epoch != epoch)) {
        if (count == LEADERSHIPS_MAX) {
            abort(); /* a test that elects so often has gone wrong */
        }
        node->notes->of[election].seen[count] =
            (struct leadership){epoch, clock_now().ns, clock_now().ns};
        node->notes->of[election].count = count + 1;
    } else if (leads && before_ns > last->last_ns) {
        last->last_ns = before_ns;
    }
    node->notes->of[election].leads = leads ? epoch : 0;
}

static void count_line(void *userdata, int code, const struct baton_member *members, size_t count)
{
    int heirs = 0;

    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        heirs += !members[i].is_cordoned;
    }
    *(int *)userdata += heirs == NODES;
}

static void count_lines(struct node *node)
{
    int lines = 0;

    for (int i = 0; i < ELECTIONS; i++) {
        (void)node->elections[i]->ops->members(node->elections[i], count_line, &lines, NULL);
    }
    node->notes->lines = lines;
}

static void note_log(struct node *node)
{
    json_t *status = raft_provider_status(node->provider);
    const char *role = json_string_value(json_object_get(status, "role"));

    node->notes->leads_log = role && strcmp(role, "leader") == 0;
    json_decref(status);
}

static void look(uv_timer_t *timer)
{
    struct node *node = timer->data;
    const struct provider_ops *ops = node->elections[0]->ops;
    bool may_lead = node->notes->may_lead; /* once: it may change during the loop */

    for (int i = 0; i < ELECTIONS; i++) {
        note(node, i);
        if (node->may_lead != may_lead) {
            (void)ops->set_eligible(node->elections[i], may_lead, NULL);
        }
    }
    node->may_lead = may_lead;
    if (node->is_cut_off != node->notes->is_cut_off) {
        node->is_cut_off = node->notes->is_cut_off;
        raft_provider_isolate(node->provider, node->is_cut_off);
    }
    if (node->looks++ % LOOKS_A_COUNT == 0) {
        count_lines(node);
    }
    note_log(node);
}

static int campaign(struct node *node, int election)
{
    char name[16];
    struct provider_campaign campaign = {
        .election = name, .eligible = node->may_lead, .on_event = on_event};

    (void)snprintf(name, sizeof(name), "e%d", election);
    campaign.cell = node->cells[election] = lease_cell_new();
    return campaign.cell ? node->provider->ops->campaign(&node->elections[election], node->provider,
                                                         &campaign, NULL)
                         : BATON_ENOMEM;
}

static int node_main(void *userdata)
{
    struct node *node = userdata;
    uv_loop_t loop;
    uv_timer_t timer = {.data = node};
    struct baton_error error;
    char name[8], url[512];
    struct provider_config config = {.loop = &loop, .url = url, .node = name};

    (void)signal(SIGPIPE, SIG_IGN); /* a peer may be killed at any moment */
    (void)snprintf(name, sizeof(name), "n%d", node->number);
    (void)snprintf(url, sizeof(url),
                   "raft://127.0.0.1:%d?group=named&preset=fast&heartbeat-timeout=3s&lease=3s"
                   "&preferred-stable=0&guardian=no&checkpoint=200ms&data=%s/%s"
                   "&peers=n0@127.0.0.1:%d^9",
                   ports[node->number], folder, name, ports[0]);
    if (!is_alone) {
        (void)snprintf(url + strlen(url), sizeof(url) - strlen(url),
                       ",n1@127.0.0.1:%d,n2@127.0.0.1:%d", ports[1], ports[2]);
    }
    if (uv_loop_init(&loop) != 0 || provider_open(&node->provider, &config, &error) != BATON_OK) {
        return 1;
    }
    node->may_lead = node->notes->may_lead;
    for (int i = 0; i < ELECTIONS; i++) {
        if (campaign(node, i) != BATON_OK) {
            return 1;
        }
    }
    (void)uv_timer_init(&loop, &timer);
    (void)uv_timer_start(&timer, look, 1, 1);
    return uv_run(&loop, UV_RUN_DEFAULT);
}

static void start(int number, bool may_lead)
{
    struct node node = {.number = number, .notes = notes[number]};

    notes[number]->may_lead = may_lead;
    notes[number]->is_cut_off = false;
    pids[number] = process_fork(node_main, &node);
}

static void kill_node(int number)
{
    process_end(pids[number]);
    pids[number] = 0;
    notes[number]->leads_log = false;
    for (int i = 0; i < ELECTIONS; i++) {
        notes[number]->of[i].leads = 0;
    }
}

/* ---- What the world saw ---------------------------------------------------------------------- */

static void pause_a_moment(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    (void)nanosleep(&moment, NULL);
}

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int looks_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            assert_true(looks_++ < PATIENCE_MS);                                                   \
            pause_a_moment();                                                                      \
        }                                                                                          \
    } while (0)

/* Whether another node than `but` leads each of them, in an epoch above that of `above`. */
static bool all_led(int but, const uint64_t above[ELECTIONS], uint64_t ret[ELECTIONS])
{
    for (int i = 0; i < ELECTIONS; i++) {
        ret[i] = 0;
        for (int node = 0; node < NODES; node++) {
            uint64_t epoch = node == but ? 0 : notes[node]->of[i].leads;
            ret[i] = epoch > above[i] ? epoch : ret[i];
        }
        if (ret[i] == 0) {
            return false;
        }
    }
    return true;
}

static int held_by(int node)
{
    int count = 0;

    for (int i = 0; i < ELECTIONS; i++) {
        count += notes[node]->of[i].leads != 0;
    }
    return count;
}

static void check_two(const struct leadership *one, const struct leadership *other)
{
    assert_int_not_equal(one->epoch, other->epoch);
    if (one->epoch < other->epoch) {
        assert_true(one->last_ns < other->first_ns);
    } else {
        assert_true(other->last_ns < one->first_ns);
    }
}

/* No election had two leaders at one instant, and epochs grew. */
static void check_leaderships(void)
{
    for (int i = 0; i < ELECTIONS; i++) {
        for (int a = 0; a < NODES * LEADERSHIPS_MAX; a++) {
            for (int b = a + 1; b < NODES * LEADERSHIPS_MAX; b++) {
                const struct notes *one = notes[a / LEADERSHIPS_MAX];
                const struct notes *other = notes[b / LEADERSHIPS_MAX];
                if (a % LEADERSHIPS_MAX < one->of[i].count &&
                    b % LEADERSHIPS_MAX < other->of[i].count) {
                    check_two(&one->of[i].seen[a % LEADERSHIPS_MAX],
                              &other->of[i].seen[b % LEADERSHIPS_MAX]);
                }
            }
        }
    }
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    char data[80];

    is_alone = false;
    process_make_folder(folder, sizeof(folder));
    process_free_ports(ports, NODES);
    for (int i = 0; i < NODES; i++) {
        (void)snprintf(data, sizeof(data), "%s/n%d", folder, i);
        (void)mkdir(data, 0700);
        notes[i] = mmap(NULL, sizeof(*notes[i]), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
        assert_ptr_not_equal(notes[i], MAP_FAILED);
    }
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < NODES; i++) {
        if (pids[i] > 0) {
            kill_node(i);
        }
        (void)munmap(notes[i], sizeof(*notes[i]));
    }
    process_remove_folder(folder);
    return 0;
}

/* n0 leads the log; `holder` all elections, and the others are in line. */
static void begin(int holder, uint64_t ret_epochs[ELECTIONS])
{
    static const uint64_t none[ELECTIONS];

    for (int i = 0; i < NODES; i++) {
        start(i, i == holder);
    }
    AWAIT(notes[0]->leads_log && all_led(NOBODY, none, ret_epochs));
    assert_int_equal(held_by(holder), ELECTIONS);
    for (int i = 0; i < NODES; i++) {
        notes[i]->may_lead = true;
    }
    for (int i = 0; i < NODES; i++) {
        AWAIT(notes[i]->lines == ELECTIONS);
    }
    assert_true(notes[0]->leads_log);
}

static void check_death(int holder)
{
    uint64_t before[ELECTIONS], after[ELECTIONS];

    begin(holder, before);
    kill_node(holder);
    AWAIT(all_led(holder, before, after));
    for (int i = 1; i < ELECTIONS; i++) {
        assert_int_equal(after[i], after[0]); /* one entry of the log granted all of them */
    }
    check_leaderships();
}

static void a_dead_holder_is_followed_in_all_elections_by_one_entry(void **state)
{
    check_death(1);
}

static void a_dead_holder_that_led_the_log_is_followed_in_all_elections_by_one_entry(void **state)
{
    check_death(0);
}

static void a_dead_leader_of_the_log_ends_no_leadership(void **state)
{
    uint64_t before[ELECTIONS], after[ELECTIONS];

    begin(1, before);
    kill_node(0);
    AWAIT(notes[1]->leads_log || notes[2]->leads_log);
    start(0, true);
    AWAIT(notes[0]->lines == ELECTIONS && notes[0]->leads_log);
    assert_int_equal(held_by(1), ELECTIONS);
    memset(after, 0, sizeof(after));
    assert_true(all_led(NOBODY, after, after));
    assert_memory_equal(before, after, sizeof(before));
    check_leaderships();
}

static void a_stopped_holder_is_followed_and_does_not_act_when_it_goes_on(void **state)
{
    uint64_t before[ELECTIONS], after[ELECTIONS];

    begin(1, before);
    assert_int_equal(kill(pids[1], SIGSTOP), 0);
    AWAIT(all_led(1, before, after));
    assert_int_equal(kill(pids[1], SIGCONT), 0);
    AWAIT(held_by(1) == 0 && notes[1]->lines == ELECTIONS);
    check_leaderships();
}

static void a_holder_that_is_cut_off_is_followed_and_comes_back(void **state)
{
    uint64_t before[ELECTIONS], after[ELECTIONS];

    begin(1, before);
    notes[1]->is_cut_off = true;
    AWAIT(all_led(1, before, after));
    assert_int_equal(held_by(1), 0);
    notes[1]->is_cut_off = false;
    AWAIT(notes[0]->lines == ELECTIONS && notes[1]->lines == ELECTIONS);
    check_leaderships();
}

static void epochs_grow_when_all_processes_are_killed_and_start_again(void **state)
{
    uint64_t before[ELECTIONS], after[ELECTIONS];

    begin(1, before);
    for (int i = 0; i < NODES; i++) {
        kill_node(i);
    }
    for (int i = 0; i < NODES; i++) {
        start(i, true);
    }
    AWAIT(all_led(NOBODY, before, after));
    check_leaderships();
}

/* Its log has the orders of the process before, with the numbers that the new one gives its own. */
static void the_orders_of_an_earlier_process_are_no_replies_to_the_new_one(void **state)
{
    static const uint64_t none[ELECTIONS];
    uint64_t before[ELECTIONS], after[ELECTIONS];

    is_alone = true;
    start(0, true);
    AWAIT(all_led(NOBODY, none, before));
    kill_node(0);
    start(0, true);
    AWAIT(all_led(NOBODY, before, after));
    check_leaderships();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_dead_holder_is_followed_in_all_elections_by_one_entry),
        CASE(a_dead_holder_that_led_the_log_is_followed_in_all_elections_by_one_entry),
        CASE(a_dead_leader_of_the_log_ends_no_leadership),
        CASE(a_stopped_holder_is_followed_and_does_not_act_when_it_goes_on),
        CASE(a_holder_that_is_cut_off_is_followed_and_comes_back),
        CASE(epochs_grow_when_all_processes_are_killed_and_start_again),
        CASE(the_orders_of_an_earlier_process_are_no_replies_to_the_new_one),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
