/* `baton demo`: five real nodes, four faults, and how long no node led after each. */
#include "base/value.h"
#include "cli/cluster.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/screen.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ACTS = 4, COLUMNS = 6, DRAW_MS = 100, TEXT_BYTES = 32, LEADER_S = 10 };

struct demo {
    struct cluster cluster;
    struct screen screen;
    int old; /* the leader before the fault */
    struct {
        const char *name;
        span gap;
        span failover;
        bool is_measured;
    } rows[ACTS];
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
    is_interrupted = number;
}

/* ---- Table ----------------------------------------------------------------------------------- */

struct texts {
    char pid[TEXT_BYTES];
    char role[TEXT_BYTES];
    char epoch[TEXT_BYTES];
    char left[VALUE_TEXT_MAX];
};

static const char *state_name(enum cluster_state state)
{
    static const char *const names[] = {"running", "killed", "stopped", "cut off"};
    return names[state];
}

static void fill_texts(const struct cluster *cluster, unsigned node, struct texts *ret)
{
    enum cluster_state state = cluster->nodes[node].state;
    json_t *status = NULL;
    (void)snprintf(ret->role, sizeof(ret->role), "%s", "-");
    (void)snprintf(ret->epoch, sizeof(ret->epoch), "%s", "-");
    (void)snprintf(ret->left, sizeof(ret->left), "%s", "-");
    (void)snprintf(ret->pid, sizeof(ret->pid), "%d", (int)cluster->nodes[node].pid);
    if (state == CLUSTER_DEAD || state == CLUSTER_STOPPED ||
        cluster_ask(cluster, node, json_pack("{s:s}", "do", "status"), SPAN_MS(50), &status,
                    NULL)) {
        return;
    }
    const char *role = json_string_value(json_object_get(status, "role"));
    double left_ms = json_number_value(json_object_get(status, "lease_left_ms"));
    (void)snprintf(ret->role, sizeof(ret->role), "%s", role ? role : "-");
    (void)snprintf(ret->epoch, sizeof(ret->epoch), "%lld",
                   (long long)json_integer_value(json_object_get(status, "epoch")));
    if (left_ms > 0) {
        (void)value_format_span((span){(int64_t)(left_ms * 1e6)}, ret->left);
    }
    json_decref(status);
}

static void draw(struct demo *demo)
{
    struct texts texts[CLUSTER_NODES_MAX];
    const char *cells[(CLUSTER_NODES_MAX + 1) * (COLUMNS + 1) + 1] = {
        "NODE", "PROCESS", "STATE", "ROLE", "EPOCH", "LEASE LEFT", NULL};
    size_t used = COLUMNS + 1;
    if (demo->screen.is_plain) {
        return;
    }
    for (unsigned i = 0; i < demo->cluster.plan.nodes; i++) {
        fill_texts(&demo->cluster, i, &texts[i]);
        const char *row[] = {demo->cluster.nodes[i].name,
                             texts[i].pid,
                             state_name(demo->cluster.nodes[i].state),
                             texts[i].role,
                             texts[i].epoch,
                             texts[i].left,
                             NULL};
        memcpy(&cells[used], row, sizeof(row));
        used += COLUMNS + 1;
    }
    screen_draw(&demo->screen, "baton demo: nodes on this machine, embedded Raft, preset fast",
                cells);
}

/* Shows the cluster for a while; a stamp (of a gain or a loss of leadership) redraws it at once. */
static void show(struct demo *demo, span length)
{
    instant until = instant_add(clock_now(), length);
    while (!is_interrupted && instant_before(clock_now(), until)) {
        uint32_t bells = act_bells(demo->cluster.act);
        draw(demo);
        (void)act_wait(demo->cluster.act, bells,
                       instant_min(until, instant_add(clock_now(), SPAN_MS(DRAW_MS))));
    }
}

/* ---- Accidents ------------------------------------------------------------------------------- */

static const char *name_of(const struct demo *demo, int node)
{
    return demo->cluster.nodes[node].name;
}

static int fall_kill(struct demo *demo, struct baton_error *reterr)
{
    (void)reterr;
    cluster_signal(&demo->cluster, (unsigned)demo->old, SIGKILL);
    return 0;
}

static int rise_kill(struct demo *demo, struct baton_error *reterr)
{
    cluster_kill(&demo->cluster, (unsigned)demo->old); /* reaps */
    show(demo, SPAN_MS(600));
    screen_say(&demo->screen, "%s starts again", name_of(demo, demo->old));
    return cluster_start(&demo->cluster, (unsigned)demo->old, reterr);
}

static int fall_stop(struct demo *demo, struct baton_error *reterr)
{
    (void)reterr;
    cluster_signal(&demo->cluster, (unsigned)demo->old, SIGSTOP);
    return 0;
}

static int rise_stop(struct demo *demo, struct baton_error *reterr)
{
    (void)reterr;
    show(demo, SPAN_MS(600));
    cluster_signal(&demo->cluster, (unsigned)demo->old, SIGCONT);
    screen_say(&demo->screen, "%s goes on, and finds itself a follower", name_of(demo, demo->old));
    return 0;
}

static int fall_cut(struct demo *demo, struct baton_error *reterr)
{
    return cluster_cut_off(&demo->cluster, (unsigned)demo->old, true, reterr);
}

static int rise_cut(struct demo *demo, struct baton_error *reterr)
{
    show(demo, SPAN_MS(600));
    screen_say(&demo->screen, "%s is reachable again", name_of(demo, demo->old));
    return cluster_cut_off(&demo->cluster, (unsigned)demo->old, false, reterr);
}

static int fall_pass(struct demo *demo, struct baton_error *reterr)
{
    json_t *request = json_pack("{s:s,s:i}", "do", "pass", "timeout_ms", 5000);
    return cluster_ask(&demo->cluster, (unsigned)demo->old, request, SPAN_S(6), NULL, reterr);
}

static int rise_nothing(struct demo *demo, struct baton_error *reterr)
{
    (void)demo;
    (void)reterr;
    return 0;
}

static const struct {
    const char *name;
    const char *says;
    int (*fall)(struct demo *demo, struct baton_error *reterr);
    int (*rise)(struct demo *demo, struct baton_error *reterr);
} acts[ACTS] = {
    {"killed (kill -9)", "kill -9 of the leader", fall_kill, rise_kill},
    {"stopped (SIGSTOP)", "SIGSTOP of the leader", fall_stop, rise_stop},
    {"cut off (test switch in the node)", "the leader drops all traffic of its peers", fall_cut,
     rise_cut},
    {"passed on (baton pass)", "the leader passes leadership on", fall_pass, rise_nothing},
};

static int play(struct demo *demo, unsigned act, struct baton_error *reterr)
{
    char gap[VALUE_TEXT_MAX];
    struct cluster *cluster = &demo->cluster;
    instant fault;
    int code;
    do { /* one that has lost its lease in between has nothing to pass on */
        demo->old = cluster_await_leader(cluster, instant_add(clock_now(), SPAN_S(LEADER_S)));
        if (demo->old < 0) {
            return error_set(reterr, BATON_ETIMEDOUT, "no node led in %d s", LEADER_S);
        }
        screen_say(&demo->screen, "%s: %s", acts[act].says, name_of(demo, demo->old));
        draw(demo);
        fault = clock_now();
        code = acts[act].fall(demo, reterr);
    } while (code && cluster_leader(cluster) != demo->old);
    int heir =
        code ? -1 : cluster_wait_leader(cluster, demo->old, fault, instant_add(fault, SPAN_S(5)));
    if (code || heir < 0) {
        return code ? code : error_set(reterr, BATON_ETIMEDOUT, "no node took over in 5 s");
    }
    struct act_stamp stamp = act_read(cluster->act, (unsigned)heir);
    demo->rows[act].name = acts[act].name;
    demo->rows[act].failover = instant_since(stamp.acquired, fault);
    demo->rows[act].gap = cluster_gap(cluster, demo->old, heir, fault);
    demo->rows[act].is_measured = true;
    screen_say(&demo->screen, "%s leads in epoch %llu, after %s without a leader",
               name_of(demo, heir), (unsigned long long)stamp.epoch,
               value_format_span(demo->rows[act].gap, gap));
    if (cluster->nodes[demo->old].state == CLUSTER_RUNNING && act == 0) {
        cluster->nodes[demo->old].state = CLUSTER_DEAD;
    }
    return acts[act].rise(demo, reterr);
}

static void print_summary(const struct demo *demo)
{
    char texts[ACTS][2][VALUE_TEXT_MAX];
    const char *cells[(ACTS + 1) * 4 + 1] = {"THE LEADER WAS", "WITHOUT A LEADER",
                                             "UNTIL ANOTHER ACTED", NULL};
    size_t used = 4;
    for (size_t i = 0; i < ACTS; i++) {
        if (demo->rows[i].is_measured) {
            cells[used++] = demo->rows[i].name;
            cells[used++] = value_format_span(demo->rows[i].gap, texts[i][0]);
            cells[used++] = value_format_span(demo->rows[i].failover, texts[i][1]);
            cells[used++] = NULL;
        }
    }
    printf("\n");
    print_table(stdout, cells);
}

static int perform(struct demo *demo, struct baton_error *reterr)
{
    instant begun = demo->screen.begun;
    int first =
        cluster_wait_leader(&demo->cluster, -1, (instant){0}, instant_add(begun, SPAN_S(LEADER_S)));
    if (first < 0) {
        return error_set(reterr, BATON_ETIMEDOUT, "no node led in %d s", LEADER_S);
    }
    screen_say(&demo->screen, "%s is the first leader", name_of(demo, first));
    int code = 0;
    for (unsigned act = 0; !code && act < ACTS && !is_interrupted; act++) {
        show(demo, SPAN_MS(2000));
        code = is_interrupted ? 0 : play(demo, act, reterr);
    }
    show(demo, SPAN_MS(1500));
    return code;
}

static void say_how_to_play(const struct demo *demo)
{
    const char *data = demo->cluster.nodes[0].data;
    printf("\nThe group goes on in %s. Try:\n"
           "  baton status -d %s\n  baton watch -d %s\n  baton members -d %s\n"
           "End it with: kill",
           demo->cluster.dir, data, data, data);
    for (unsigned i = 0; i < demo->cluster.plan.nodes; i++) {
        printf(" %d", (int)demo->cluster.nodes[i].pid);
    }
    printf("; rm -r %s\n", demo->cluster.dir);
}

int demo_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct baton_error error = {0};
    struct demo demo = {.old = -1};
    bool keeps = options_flag(options, "keep");
    bool is_plain = options_flag(options, "plain") || !isatty(STDOUT_FILENO);
    struct cluster_plan plan = {.nodes = (unsigned)options_number(options, "nodes"),
                                .preset = "fast",
                                .guardian = "on",
                                .is_kept = keeps};
    struct sigaction action = {.sa_handler = on_interrupt};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGPIPE, &action, NULL); /* the reader of the pipe has ended */
    screen_init(&demo.screen, stdout, is_plain);
    screen_say(&demo.screen, "%u nodes start", plan.nodes);
    int code = cluster_open(&demo.cluster, &plan, &error);
    if (code) {
        return command_fail(invocation, &error);
    }
    code = perform(&demo, &error);
    if (!is_interrupted && !code) {
        print_summary(&demo);
    }
    if (keeps && !code && !is_interrupted) {
        say_how_to_play(&demo);
    }
    if (is_interrupted) {
        cluster_close(&demo.cluster, CLUSTER_NOTHING);
        return EXIT_SIGNAL + is_interrupted;
    }
    if (code) {
        cluster_close(&demo.cluster, CLUSTER_FILES);
        (void)fprintf(stderr, "baton demo: see the nodes' logs in %s\n", demo.cluster.dir);
        return command_fail(invocation, &error);
    }
    cluster_close(&demo.cluster, keeps ? CLUSTER_ALL : CLUSTER_NOTHING);
    return EXIT_OK;
}
