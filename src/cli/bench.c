/* `baton bench failover`: real processes and real faults; the new leader stamps the time. */
#include "cli/bench_agent.h"
#include "cli/bench_elections.h"
#include "cli/bench_memory.h"
#include "cli/bench_network.h"
#include "cli/bench_placement.h"
#include "cli/bench_renew.h"
#include "cli/bench_server.h"
#include "cli/bench_state.h"
#include "cli/bench_work.h"
#include "cli/cluster.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "raft/raft.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OOM_LIMIT = 64 << 20 }; /* an idle node takes a tenth of it */
enum { START_S = 30, FIRST_LEADER_S = 60, FAILOVER_S = 120, PAUSE_MS = 300 };
enum { CLUSTERS_MAX = 5 };

struct bench_round {
    span failover; /* from the fault until another node leads and acts */
    span gap;      /* no node led */
};

struct bench {
    const char *fault;
    /* They take turns: after its start a voter of raft: is silent for as long as it may have
     * promised, and the rounds of one cluster would be mostly waiting. */
    struct cluster clusters[CLUSTERS_MAX];
    instant settled[CLUSTERS_MAX]; /* when the next round of each may begin */
    unsigned count, opened;
    struct cluster *cluster;    /* whose turn it is */
    struct bench_server server; /* used with Redis only */
    struct bench_agent agent;   /* and this one with the agent, … */
    struct bench_group group;   /* … or with a network an agent at each host */
    const char *urls[BENCH_GROUP_AGENTS];
    char folder[40];            /* of the group; "": none */
    struct bench_memory memory; /* with --fault oom */
    char server_url[256];
    span silence; /* how long a node does not vote after its start */
};

static void rest(span length)
{
    if (length.ns <= 0) {
        return;
    }
    struct timespec wait = {.tv_sec = length.ns / 1000000000, .tv_nsec = length.ns % 1000000000};
    while (nanosleep(&wait, &wait) != 0) {
    }
}

/* A node takes time to start, especially if it holds much memory. */
static void await_answers(const struct cluster *cluster, unsigned node)
{
    instant limit = instant_add(clock_now(), SPAN_S(START_S));

    while (!cluster->plan.program && instant_before(clock_now(), limit) &&
           cluster_ask(cluster, node, json_pack("{s:s}", "do", "status"), SPAN_S(1), NULL, NULL)) {
        rest(SPAN_MS(20));
    }
}

/* Before a round the cluster must be settled: every node votes again and is connected, and the
 * guardian knows the heir. */
static void settle(struct bench *bench, bool has_started)
{
    span time = has_started ? (span){bench->silence.ns + SPAN_MS(700).ns} : SPAN_MS(PAUSE_MS);

    bench->settled[bench->cluster - bench->clusters] = instant_add(clock_now(), time);
}

static void await_settled(const struct bench *bench)
{
    rest(instant_since(bench->settled[bench->cluster - bench->clusters], clock_now()));
}

static bool is_fault(const struct bench *bench, const char *name)
{
    return strcmp(bench->fault, name) == 0;
}

/* The process ends, and is started anew after the round. */
static bool is_deadly(const struct bench *bench)
{
    return is_fault(bench, "kill") || is_fault(bench, "crash") || is_fault(bench, "container") ||
           is_fault(bench, "elector") || is_fault(bench, "oom") ||
           (is_fault(bench, "stop") && bench->cluster->plan.hang);
}

static int inflict(struct bench *bench, unsigned leader, instant *ret_fault,
                   struct baton_error *reterr)
{
    struct cluster *cluster = bench->cluster;
    pid_t elector = is_fault(bench, "elector") ? cluster_elector(cluster, leader) : 0;
    *ret_fault = clock_now();
    if (elector > 0) {
        (void)kill(elector, SIGKILL);
        return 0;
    }
    if (is_fault(bench, "elector")) {
        return error_set(reterr, BATON_EIO, "process 1 of the leader's container has no child");
    }
    if (is_fault(bench, "oom")) {
        bench_memory_await_end();
        cluster_signal(cluster, leader, SIGUSR2);
        return 0;
    }
    if (strcmp(bench->fault, "kill") == 0 || strcmp(bench->fault, "container") == 0) {
        cluster_signal(cluster, leader, SIGKILL);
        return 0;
    }
    if (strcmp(bench->fault, "crash") == 0) {
        cluster_signal(cluster, leader, SIGSEGV);
        return 0;
    }
    if (strcmp(bench->fault, "stop") == 0) {
        cluster_signal(cluster, leader, SIGSTOP);
        return 0;
    }
    if (strcmp(bench->fault, "partition") == 0) {
        return cluster_cut_off(cluster, leader, true, reterr);
    }
    if (strcmp(bench->fault, "redis-restart") == 0) {
        bench_server_kill(&bench->server);
        return bench_server_start(&bench->server, reterr);
    }
    if (cluster->plan.program) {
        (void)kill(cluster->nodes[leader].pid, SIGUSR1);
        return 0;
    }
    json_t *request = json_pack("{s:s,s:i}", "do", "pass", "timeout_ms", 10000);
    return cluster_ask(cluster, leader, request, SPAN_S(15), NULL, reterr);
}

static int heal(struct bench *bench, unsigned leader, struct baton_error *reterr)
{
    struct cluster *cluster = bench->cluster;
    if (is_deadly(bench)) {
        cluster_kill(cluster, leader); /* reaps */
        cluster_forget_hangs(cluster, leader);
        int code = cluster_start(cluster, leader, reterr);
        await_answers(cluster, leader);
        settle(bench, true);
        return code;
    }
    if (strcmp(bench->fault, "stop") == 0) {
        cluster_signal(cluster, leader, SIGCONT);
    } else if (strcmp(bench->fault, "partition") == 0) {
        int code = cluster_cut_off(cluster, leader, false, reterr);
        if (code) {
            return code;
        }
    }
    settle(bench, false);
    return 0;
}

static int one_round(struct bench *bench, struct bench_round *ret, struct baton_error *reterr)
{
    instant fault;
    int old, code;
    rest(SPAN_MS(PAUSE_MS)); /* from the start of another cluster's node */
    await_settled(bench);
    do { /* one that has lost its lease in between has nothing to pass on */
        bool is_new = cluster_leader(bench->cluster) < 0;
        old =
            cluster_await_leader(bench->cluster, instant_add(clock_now(), SPAN_S(FIRST_LEADER_S)));
        if (old < 0) {
            return error_set(reterr, BATON_ETIMEDOUT, "no leader in %d s", FIRST_LEADER_S);
        }
        if (is_new) { /* the others follow it first */
            rest(SPAN_MS(PAUSE_MS));
        }
        code = inflict(bench, (unsigned)old, &fault, reterr);
    } while (code && cluster_leader(bench->cluster) != old);
    if (code) {
        return code;
    }
    /* After a restart of the server the old leader may lead again. */
    bool is_server = strcmp(bench->fault, "redis-restart") == 0;
    int heir = cluster_wait_leader(bench->cluster, is_server ? -1 : old, fault,
                                   instant_add(fault, SPAN_S(FAILOVER_S)));
    if (heir < 0) {
        return error_set(reterr, BATON_ETIMEDOUT, "no node took over in %d s", FAILOVER_S);
    }
    struct act_stamp stamp = act_read(bench->cluster->act, (unsigned)heir);
    ret->gap = cluster_gap(bench->cluster, old, heir, fault);
    if (is_fault(bench, "oom")) { /* from its last sign of life; the gap, from its end */
        fault = act_read(bench->cluster->act, (unsigned)old).alive;
        ret->gap = instant_since(stamp.acquired, bench_memory_ended());
    }
    ret->failover = instant_since(stamp.acquired, fault);
    return heal(bench, (unsigned)old, reterr);
}

/* In a build tree the peers' programs lie beside this one. */
static int find_peer(const struct options *options, char *ret, size_t bytes,
                     struct baton_error *reterr)
{
    const char *provider = options_text(options, "provider");
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    int name_bytes = (int)strcspn(provider, "-");
    (void)snprintf(ret, bytes, "%.*s/baton-bench-%.*s", slash ? (int)(slash - self) : 0, self,
                   name_bytes, provider);
    static const char *const ours[] = {"partition", "elector", "oom"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strcmp(options_text(options, "fault"), ours[i]) == 0) {
            return error_set(reterr, BATON_ENOTSUP, "--fault %s: not for --provider %s", ours[i],
                             provider);
        }
    }
    return access(ret, X_OK) == 0
               ? 0
               : error_set(reterr, BATON_ENOENT,
                           "%s: not found; 'make bench' installs and builds the peers", ret);
}

static int open_cluster(struct bench *bench, const struct cluster_plan *plan,
                        struct baton_error *reterr)
{
    struct cluster_plan own = *plan;
    instant begun = clock_now();
    int code;

    own.first_host = bench->opened * plan->nodes;
    bench->cluster = &bench->clusters[bench->opened];
    code = cluster_open(bench->cluster, &own, reterr);
    if (code) {
        return code;
    }
    bench->opened++;
    if (cluster_wait_leader(bench->cluster, -1, begun, instant_add(begun, SPAN_S(FIRST_LEADER_S))) <
        0) {
        return error_set(reterr, BATON_ETIMEDOUT, "no first leader in %d s", FIRST_LEADER_S);
    }
    for (unsigned i = 0; i < plan->nodes; i++) {
        await_answers(bench->cluster, i);
    }
    settle(bench, true);
    return 0;
}

static int run_rounds(struct bench *bench, const struct cluster_plan *plan,
                      struct bench_round *rounds, size_t count, struct baton_error *reterr)
{
    int code = 0;

    while (!code && !interrupt_signal() && bench->opened < bench->count) {
        code = open_cluster(bench, plan, reterr);
    }
    for (size_t i = 0; !code && !interrupt_signal() && i < count; i++) {
        bench->cluster = &bench->clusters[i % bench->count];
        code = one_round(bench, &rounds[i], reterr);
    }
    while (bench->opened > 0) {
        cluster_close(&bench->clusters[--bench->opened], CLUSTER_NOTHING);
    }
    return code;
}

/* More than one where the rounds are mostly waiting, and as many as have room. */
static unsigned clusters_for(const struct bench *bench, const struct cluster_plan *plan,
                             size_t rounds)
{
    bool waits = is_fault(bench, "kill") || is_fault(bench, "crash");
    bool is_small = !plan->resident_mb || strcmp(plan->resident_mb, "0") == 0;
    unsigned room = DELAY_HOSTS_MAX / plan->nodes;

    room = room < CLUSTERS_MAX ? room : CLUSTERS_MAX;
    return waits && is_small ? (unsigned)(rounds < room ? rounds : room) : 1;
}

static void name_server(struct bench *bench, const struct options *options, bool is_ours)
{
    long long lease_ms = (long long)options_duration(options, "lease").ns / 1000000;

    if (is_ours) {
        (void)snprintf(bench->server_url, sizeof(bench->server_url),
                       "redis://%s?lease=%lldms&max-lease=%lldms&guardian=%s",
                       bench->server.address, lease_ms, lease_ms,
                       options_text(options, "guardian"));
    } else {
        (void)snprintf(bench->server_url, sizeof(bench->server_url), "%s", bench->server.address);
    }
}

/* "1" or "0.5%" */
static int read_loss(const char *text, uint32_t *ret_ppm, struct baton_error *reterr)
{
    char *end = NULL;
    double percent = strtod(text, &end);

    if (end == text || (*end && strcmp(end, "%") != 0) || !(percent >= 0 && percent <= 50)) {
        return error_set(reterr, BATON_EINVAL, "--loss %s: a share from 0 to 50%%", text);
    }
    *ret_ppm = (uint32_t)(percent * 10000);
    return 0;
}

static int open_network(const struct options *options, bool has_hosts, unsigned nodes,
                        struct bench_network **ret, struct baton_error *reterr)
{
    struct delay_settings settings = {.rtt = options_duration(options, "rtt"),
                                      .jitter = options_duration(options, "jitter"),
                                      .seed = (uint64_t)clock_now().ns};
    int code = read_loss(options_text(options, "loss"), &settings.loss_ppm, reterr);

    *ret = NULL;
    if (code) {
        return code;
    }
    if (settings.rtt.ns == 0) {
        return settings.jitter.ns == 0 && settings.loss_ppm == 0
                   ? 0
                   : error_set(reterr, BATON_EINVAL, "--jitter and --loss: only with --rtt");
    }
    if (!has_hosts) {
        return error_set(reterr, BATON_ENOTSUP, "--rtt: only for --provider raft and agent");
    }
    if (settings.jitter.ns > settings.rtt.ns || settings.rtt.ns > SPAN_S(10).ns) {
        return error_set(reterr, BATON_EINVAL,
                         "--rtt, --jitter: the round trip is at most 10 s, and the jitter no more");
    }
    return bench_network_open(ret, nodes, &settings, reterr);
}

/* A process that hangs is silent: to its agent that is the end of its client lease. */
static span client_lease(const struct options *options)
{
    return options_duration(options, options_text(options, "hang") ? "hang" : "lease");
}

static int start_agents(struct bench *bench, struct cluster_plan *plan, span client_lease,
                        struct baton_error *reterr)
{
    plan->hang = NULL;
    if (!plan->network) {
        plan->server = bench->agent.url;
        return bench_agent_start(&bench->agent, client_lease, reterr);
    }
    if (plan->nodes != BENCH_GROUP_AGENTS) {
        return error_set(reterr, BATON_EINVAL, "--nodes: %d with --provider agent and --rtt",
                         BENCH_GROUP_AGENTS);
    }
    (void)snprintf(bench->folder, sizeof(bench->folder), "%s", "/tmp/baton-agents-XXXXXX");
    if (!mkdtemp(bench->folder)) {
        bench->folder[0] = '\0';
        return error_set(reterr, BATON_EIO, "/tmp: %s", strerror(errno));
    }
    bench->group.network = plan->network;
    bench->group.client_lease = client_lease;
    for (unsigned i = 0; i < BENCH_GROUP_AGENTS; i++) {
        bench->urls[i] = bench->group.agents[i].url;
    }
    plan->servers = bench->urls;
    return bench_group_start(&bench->group, bench->folder, reterr);
}

static void end_agents(struct bench *bench)
{
    bench_agent_kill(&bench->agent);
    bench_group_kill(&bench->group);
    if (bench->folder[0]) {
        cluster_remove(bench->folder);
    }
}

static int run(const struct options *options, struct bench_round *rounds, size_t count,
               struct bench_network_figures *ret_network, struct baton_error *reterr)
{
    const char *provider = options_text(options, "provider");
    bool is_redis = strcmp(provider, "redis") == 0;
    bool is_seed = strncmp(provider, "seed", 4) == 0;
    bool is_raft = strcmp(provider, "raft") == 0;
    bool is_agent = strcmp(provider, "agent") == 0;
    char program[4200];
    struct raft_settings settings;
    struct bench bench = {
        .fault = options_text(options, "fault"), .silence = SPAN_MS(1500), .count = 1};
    struct cluster_plan plan = {.nodes = (unsigned)options_number(options, "nodes"),
                                .preset = options_text(options, "preset"),
                                .guardian = options_text(options, "guardian"),
                                .resident_mb = options_text(options, "resident-mb"),
                                .hang = options_text(options, "hang"),
                                .is_contained =
                                    is_fault(&bench, "container") || is_fault(&bench, "elector"),
                                .mode = strchr(provider, '-') ? "tuned" : "default"};
    int code = raft_settings_preset(&settings, plan.preset, reterr);
    if (!code && is_raft) {
        bench.silence = raft_settings_bounds(&settings).restart_silence;
        bench.count = clusters_for(&bench, &plan, count);
    } else if (!code && !is_redis && !is_agent) {
        code = find_peer(options, program, sizeof(program), reterr);
        plan.program = program;
    }
    if (!code && !is_redis && !is_seed && strcmp(bench.fault, "redis-restart") == 0) {
        code = error_set(reterr, BATON_EINVAL, "--fault redis-restart: --provider redis or seed");
    }
    if (!code && (is_redis || is_seed)) {
        code = bench_server_start(&bench.server, reterr);
        name_server(&bench, options, is_redis);
        plan.server = bench.server_url;
    }
    if (!code && is_fault(&bench, "oom")) {
        code = bench_memory_open(&bench.memory, plan.nodes, OOM_LIMIT, reterr);
        plan.memory = &bench.memory;
    }
    if (!code) {
        code = open_network(options, is_raft || is_agent, bench.count * plan.nodes, &plan.network,
                            reterr);
    }
    if (!code && is_agent) {
        code = start_agents(&bench, &plan, client_lease(options), reterr);
    }
    code = code ? code : run_rounds(&bench, &plan, rounds, count, reterr);
    if (!code && plan.network) {
        bench_network_figures(plan.network, ret_network);
    }
    bench_network_close(plan.network);
    bench_memory_close(&bench.memory);
    bench_server_kill(&bench.server);
    end_agents(&bench);
    return code;
}

/* ---- Figures --------------------------------------------------------------------------------- */

static json_t *figures(const struct bench_round *rounds, size_t count, bool is_gap)
{
    double *ms = calloc(count, sizeof(*ms));
    json_t *json = NULL;
    for (size_t i = 0; ms && i < count; i++) {
        ms[i] = (double)(is_gap ? rounds[i].gap : rounds[i].failover).ns / 1e6;
    }
    if (ms) {
        json = figures_of(ms, count);
    }
    free(ms);
    return json;
}

static void print_figures(const struct options *options, const json_t *json, const json_t *gap)
{
    static const char *const keys[] = {"min_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"};
    char texts[2][5][32];
    const char *cells[3 * 7 + 1] = {"MS", "MIN", "P50", "P95", "P99", "MAX", NULL};
    bool is_oom = strcmp(options_text(options, "fault"), "oom") == 0;
    size_t used = 7;
    for (size_t row = 0; row < 2; row++) {
        cells[used++] = row == 0 ? "fault to acting leader"
                        : is_oom ? "its end to acting leader"
                                 : "without a leader";
        for (size_t i = 0; i < 5; i++) {
            double number = json_number_value(json_object_get(row == 0 ? json : gap, keys[i]));
            (void)snprintf(texts[row][i], sizeof(texts[0][0]), "%.3f", number);
            cells[used++] = texts[row][i];
        }
        cells[used++] = NULL;
    }
    printf("%s, %s, %lld rounds\n", options_text(options, "provider"),
           options_text(options, "fault"), (long long)options_number(options, "rounds"));
    print_table(stdout, cells);
}

static void report_network(const struct bench_network_figures *network, json_t *json)
{
    if (json) {
        (void)json_object_set_new(
            json, "network",
            json_pack("{s:I,s:I,s:f,s:f}", "packets", (json_int_t)network->packets, "lost",
                      (json_int_t)network->lost, "rtt_p50_ms", network->rtt_p50_ms, "late_p99_ms",
                      network->late_p99_ms));
    } else {
        printf("network: %.3f ms round trip (p50), %llu of %llu packets lost, p99 %.3f ms late\n",
               network->rtt_p50_ms, (unsigned long long)network->lost,
               (unsigned long long)network->packets, network->late_p99_ms);
    }
}

static void report(const struct options *options, const struct bench_round *rounds, size_t count,
                   const struct bench_network_figures *network)
{
    json_t *json = figures(rounds, count, false);
    json_t *gap = figures(rounds, count, true);
    if (options_flag(options, "json")) {
        (void)json_object_set_new(json, "rounds", json_integer((json_int_t)count));
        (void)json_object_set_new(json, "provider", json_string(options_text(options, "provider")));
        (void)json_object_set_new(json, "fault", json_string(options_text(options, "fault")));
        (void)json_object_set_new(json, "preset", json_string(options_text(options, "preset")));
        (void)json_object_set_new(json, "guardian", json_string(options_text(options, "guardian")));
        (void)json_object_set_new(json, "nodes", json_integer(options_number(options, "nodes")));
        (void)json_object_set(json, "gap", gap);
        if (network->packets > 0) {
            report_network(network, json);
        }
        print_json(stdout, json);
    } else {
        print_figures(options, json, gap);
        if (network->packets > 0) {
            report_network(network, NULL);
        }
    }
    json_decref(json);
    json_decref(gap);
}

int bench_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct baton_error error = {0};
    size_t count = (size_t)options_number(options, "rounds");
    if (strcmp(invocation->argv[0], "renew") == 0) {
        return bench_renew(invocation);
    }
    if (strcmp(invocation->argv[0], "elections") == 0) {
        return bench_elections(invocation);
    }
    if (strcmp(invocation->argv[0], "state") == 0) {
        return bench_state(invocation);
    }
    if (strcmp(invocation->argv[0], "work") == 0) {
        return bench_work(invocation);
    }
    if (strcmp(invocation->argv[0], "placement") == 0) {
        return bench_placement(invocation);
    }
    struct bench_round *rounds = calloc(count, sizeof(*rounds));
    struct bench_network_figures network = {0};
    int code;
    if (strcmp(invocation->argv[0], "failover") != 0) {
        code = error_set(&error, BATON_EINVAL,
                         "'%s': no such benchmark; there are failover, renew, elections, "
                         "state, placement and work",
                         invocation->argv[0]);
    } else if (!rounds) {
        code = error_set(&error, BATON_ENOMEM, "out of memory");
    } else {
        interrupt_listen();
        code = run(options, rounds, count, &network, &error);
    }
    if (!code && !interrupt_signal()) {
        report(options, rounds, count, &network);
    }
    free(rounds);
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal()
           : code             ? command_fail(invocation, &error)
                              : EXIT_OK;
}
