/* `baton bench elections`: three processes of one raft: group take part in many elections. The
 * first leads some of them, and is killed in each round.
 *
 * Each process notes in memory that all share when it acquired which election, by the one clock of
 * this machine. */
#include "cli/bench_elections.h"

#include "base/clock.h"
#include "cli/cluster.h"
#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "member/handover.h"
#include "member/join.h"
#include "member/member.h"
#include "member/members.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 3, VICTIM = 0, LOOK_MS = 20, PATIENCE_S = 120, IDLE_S = 2 };

struct led {
    _Atomic uint64_t epoch; /* 0: does not lead it */
    _Atomic int64_t at_ns;
};

/* One process's notes, and the orders to it. */
struct notes {
    _Atomic bool may_lead_all; /* order: it may lead in all elections */
    _Atomic bool passes;       /* order: the victim's elections go back to the victim */
    _Atomic unsigned lines;    /* in which all processes may lead, as it knows */
    _Atomic bool leads_log;    /* the victim only */
    _Atomic int64_t bytes;     /* of all its elections */
    _Atomic int64_t cpu_ns;
    struct led led[];
};

struct bench_elections {
    unsigned elections, held;
    unsigned led_log; /* rounds in which the victim led the log, too */
    char dir[64];
    char addresses[PROCESSES][32];
    pid_t pids[PROCESSES];
    struct notes *notes[PROCESSES];
};

/* ---- A process ------------------------------------------------------------------------------- */

struct part {
    struct observer observer;
    struct participant *participant;
    struct election *election;
    unsigned number;
    bool may_lead;
};

struct participant {
    struct bench_elections *bench;
    unsigned number;
    struct notes *notes;
    struct member *member;
    struct part *parts;
    int64_t before; /* bytes of this process with one election; 0: it has not settled yet */
    bool has_entered_all;
};

static void on_event(struct observer *observer, const struct baton_event *event)
{
    struct part *part = OBSERVER_OF(struct part, observer);
    struct led *led = &part->participant->notes->led[part->number];

    if (event->type == BATON_EVENT_ACQUIRED) {
        led->at_ns = clock_now().ns;
        led->epoch = event->epoch;
    } else if (event->type == BATON_EVENT_LOST) {
        led->epoch = 0;
    }
}

static int64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";
    const char *second = NULL;

    if (file) {
        second = fgets(line, sizeof(line), file) ? strchr(line, ' ') : NULL;
        (void)fclose(file);
    }
    return second ? strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

/* At the beginning the victim leads the first elections, and the others the rest. */
static bool begins_eligible(const struct participant *own, unsigned election)
{
    return (own->number == VICTIM) == (election < own->bench->held);
}

static int campaign(struct participant *own, unsigned number)
{
    struct part *part = &own->parts[number];
    char name[24];

    (void)snprintf(name, sizeof(name), "election-%u", number);
    *part = (struct part){.observer = {.on_event = on_event},
                          .participant = own,
                          .number = number,
                          .may_lead = begins_eligible(own, number),
                          .election = calloc(1, election_bytes(name))};
    if (!part->election || election_init(part->election, name, NULL) != BATON_OK) {
        return BATON_ENOMEM;
    }
    election_observe(part->election, &part->observer);
    return election_join(part->election, own->member, !part->may_lead, NULL, NULL);
}

static void count_line(void *userdata, int code, const struct baton_member *members, size_t count)
{
    unsigned eligible = 0;

    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        eligible += !members[i].is_cordoned;
    }
    *(unsigned *)userdata += eligible == PROCESSES;
}

static void obey(struct participant *own, struct part *part)
{
    const struct handover_request pass = {.kind = HANDOVER_RESIGN,
                                          .to = "n0",
                                          .deadline = instant_add(clock_now(), SPAN_S(PATIENCE_S)),
                                          .is_forced = true};

    if (!part->may_lead && own->notes->may_lead_all) {
        part->may_lead = true;
        (void)handover_uncordon(part->election, NULL);
    }
    if (own->notes->passes && own->number != VICTIM && part->number < own->bench->held &&
        own->notes->led[part->number].epoch != 0) {
        (void)handover_begin(part->election, &pass, NULL);
    }
}

static void count_lines(struct participant *own)
{
    unsigned lines = 0;

    for (unsigned i = 0; i < own->bench->elections; i++) {
        (void)members_list(own->parts[i].election, count_line, &lines, NULL);
    }
    own->notes->bytes = resident_bytes() - own->before;
    own->notes->lines = lines;
}

static bool leads_log(const struct participant *own)
{
    json_t *status = member_provider_status(own->member);
    const char *role = json_string_value(json_object_get(status, "role"));
    bool leads = role && strcmp(role, "leader") == 0;

    json_decref(status);
    return leads;
}

/* The group, its connections and their code are there once one election is led: what comes then is
 * the cost of elections. */
static void settle(struct participant *own)
{
    struct baton_member leader;
    uint64_t epoch;

    election_leader(own->parts[0].election, &leader, &epoch);
    if (epoch == 0) {
        return;
    }
    for (unsigned i = 1; i < own->bench->elections; i++) {
        own->parts[i].number = i; /* the pages of this program's own notes are there, too */
        own->notes->led[i].epoch = 0;
    }
    own->before = resident_bytes();
    for (unsigned i = 1; i < own->bench->elections; i++) {
        if (campaign(own, i) != BATON_OK) {
            exit(EXIT_FAILURE);
        }
    }
}

static void look(uv_timer_t *timer)
{
    struct participant *own = timer->data;
    struct notes *notes = own->notes;
    struct timespec used = {0};

    if (own->before == 0) {
        settle(own);
        return;
    }
    if (notes->passes || (notes->may_lead_all && !own->has_entered_all)) {
        for (unsigned i = 0; i < own->bench->elections; i++) {
            obey(own, &own->parts[i]);
        }
        own->has_entered_all = notes->may_lead_all;
    }
    if (own->has_entered_all && notes->lines < own->bench->elections) {
        count_lines(own);
    }
    notes->leads_log = own->number == VICTIM && leads_log(own);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    notes->cpu_ns = (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static void put_url(const struct participant *own, char *ret, size_t bytes)
{
    const struct bench_elections *bench = own->bench;

    (void)snprintf(ret, bytes,
                   "raft://%s?group=bench&guardian=off&data=%s/n%u&peers=n0@%s,n1@%s,n2@%s",
                   bench->addresses[own->number], bench->dir, own->number, bench->addresses[0],
                   bench->addresses[1], bench->addresses[2]);
}

static int take_part(struct participant *own)
{
    char name[8], url[512];
    uv_loop_t loop;
    uv_timer_t timer = {.data = own};
    struct provider_config config = {.loop = &loop, .url = url, .node = name};

    (void)snprintf(name, sizeof(name), "n%u", own->number);
    put_url(own, url, sizeof(url));
    own->parts = calloc(own->bench->elections, sizeof(*own->parts));
    if (!own->parts || uv_loop_init(&loop) != 0 ||
        member_open(&own->member, &config, NULL) != BATON_OK || campaign(own, 0) != BATON_OK) {
        return EXIT_FAILURE;
    }
    (void)uv_timer_init(&loop, &timer);
    (void)uv_timer_start(&timer, look, LOOK_MS, LOOK_MS);
    return uv_run(&loop, UV_RUN_DEFAULT);
}

static int start(struct bench_elections *bench, unsigned number, struct baton_error *reterr)
{
    struct participant own = {.bench = bench, .number = number, .notes = bench->notes[number]};

    own.notes->lines = 0;
    bench->pids[number] = fork();
    if (bench->pids[number] == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGPIPE, SIG_IGN);
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
        _exit(take_part(&own));
    }
    return bench->pids[number] > 0 ? BATON_OK
                                   : error_set(reterr, BATON_EIO, "fork: %s", strerror(errno));
}

static void kill_process(struct bench_elections *bench, unsigned number)
{
    if (bench->pids[number] > 0) {
        (void)kill(bench->pids[number], SIGKILL);
        (void)waitpid(bench->pids[number], NULL, 0);
        bench->pids[number] = 0;
    }
}

/* ---- The rounds ------------------------------------------------------------------------------ */

static void rest(span length)
{
    const struct timespec wait = {.tv_sec = length.ns / 1000000000,
                                  .tv_nsec = length.ns % 1000000000};
    (void)nanosleep(&wait, NULL);
}

static bool is_led(const struct bench_elections *bench, unsigned election, bool by_victim)
{
    for (unsigned i = by_victim ? VICTIM : VICTIM + 1; i < (by_victim ? VICTIM + 1 : PROCESSES);
         i++) {
        if (bench->notes[i]->led[election].epoch != 0) {
            return true;
        }
    }
    return false;
}

/* Whether the victim leads the first elections, or others do; and others lead the rest. */
static bool are_led(const struct bench_elections *bench, bool by_victim)
{
    for (unsigned i = 0; i < bench->elections; i++) {
        if (!is_led(bench, i, by_victim && i < bench->held)) {
            return false;
        }
    }
    return true;
}

static bool are_in_line(const struct bench_elections *bench)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        if (bench->notes[i]->lines < bench->elections) {
            return false;
        }
    }
    return true;
}

static int await(const struct bench_elections *bench, bool by_victim, bool in_line,
                 struct baton_error *reterr)
{
    instant limit = instant_add(clock_now(), SPAN_S(PATIENCE_S));

    while (!are_led(bench, by_victim) || (in_line && !are_in_line(bench))) {
        if (interrupt_signal()) {
            return BATON_ECANCELED;
        }
        if (!instant_before(clock_now(), limit)) {
            return error_set(reterr, BATON_ETIMEDOUT,
                             "the elections are not all led as they should be after %d s; is the "
                             "machine overloaded?",
                             PATIENCE_S);
        }
        rest(SPAN_MS(1));
    }
    return BATON_OK;
}

static void order(struct bench_elections *bench, bool passes)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        bench->notes[i]->may_lead_all = true;
        bench->notes[i]->passes = passes;
    }
}

/* All take part in all elections, and the victim leads the first ones. */
static int begin(struct bench_elections *bench, struct baton_error *reterr)
{
    int code = BATON_OK;

    for (unsigned i = 0; code == BATON_OK && i < PROCESSES; i++) {
        code = start(bench, i, reterr);
    }
    code = code ? code : await(bench, true, false, reterr);
    order(bench, false);
    return code ? code : await(bench, true, true, reterr);
}

/* The victim's end, until others lead all that it led. */
static int one_round(struct bench_elections *bench, double *ret_ms, struct baton_error *reterr)
{
    instant fault = clock_now(), last = fault;
    int code;

    bench->led_log += bench->notes[VICTIM]->leads_log;
    kill_process(bench, VICTIM);
    for (unsigned i = 0; i < bench->elections; i++) {
        bench->notes[VICTIM]->led[i].epoch = 0;
    }
    code = await(bench, false, false, reterr);
    for (unsigned i = 0; i < bench->held; i++) {
        for (unsigned other = VICTIM + 1; other < PROCESSES; other++) {
            const struct led *led = &bench->notes[other]->led[i];
            last = led->epoch != 0 ? instant_max(last, (instant){led->at_ns}) : last;
        }
    }
    *ret_ms = (double)instant_since(last, fault).ns / 1e6;
    return code;
}

/* The victim is back in all lines, and gets its elections again. */
static int restore(struct bench_elections *bench, struct baton_error *reterr)
{
    int code = start(bench, VICTIM, reterr);

    for (unsigned i = 0; i < PROCESSES; i++) {
        bench->notes[i]->lines = 0;
    }
    code = code ? code : await(bench, false, true, reterr);
    order(bench, true);
    code = code ? code : await(bench, true, false, reterr);
    order(bench, false);
    return code;
}

/* The share of a core that a process takes which leads its elections and does nothing else. */
static double idle_cpu(const struct bench_elections *bench)
{
    int64_t before = bench->notes[1]->cpu_ns;

    rest(SPAN_S(IDLE_S));
    return (double)(bench->notes[1]->cpu_ns - before) / (double)SPAN_S(IDLE_S).ns;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static int prepare(struct bench_elections *bench, struct baton_error *reterr)
{
    size_t bytes = sizeof(struct notes) + bench->elections * sizeof(struct led);
    char data[96];
    int code = BATON_OK;

    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/baton-bench-XXXXXX");
    if (!mkdtemp(bench->dir)) {
        return error_set(reterr, BATON_EIO, "%s: %s", bench->dir, strerror(errno));
    }
    for (unsigned i = 0; code == BATON_OK && i < PROCESSES; i++) {
        (void)snprintf(data, sizeof(data), "%s/n%u", bench->dir, i);
        (void)mkdir(data, 0700);
        bench->notes[i] =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        code = bench->notes[i] == MAP_FAILED
                   ? error_set(reterr, BATON_ENOMEM, "out of memory")
                   : cluster_free_address(bench->addresses[i], sizeof(bench->addresses[i]), reterr);
    }
    return code;
}

static void clean(struct bench_elections *bench)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        kill_process(bench, i);
    }
    (void)nftw(bench->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int run(struct bench_elections *bench, double *ms, size_t rounds, double *ret_cpu,
               struct baton_error *reterr)
{
    int code = begin(bench, reterr);

    *ret_cpu = code ? 0 : idle_cpu(bench);
    for (size_t i = 0; !code && i < rounds; i++) {
        print_progress(stderr, "rounds", (double)i / (double)rounds);
        code = one_round(bench, &ms[i], reterr);
        code = code || i + 1 == rounds ? code : restore(bench, reterr);
    }
    print_progress(stderr, NULL, 0);
    return code;
}

static void report(const struct options *options, const struct bench_elections *bench, json_t *json,
                   double cpu)
{
    double bytes = (double)bench->notes[1]->bytes / bench->elections;

    (void)json_object_set_new(json, "rounds", json_integer(options_number(options, "rounds")));
    (void)json_object_set_new(json, "elections", json_integer((json_int_t)bench->elections));
    (void)json_object_set_new(json, "led_log", json_integer((json_int_t)bench->led_log));
    (void)json_object_set_new(json, "held", json_integer((json_int_t)bench->held));
    (void)json_object_set_new(json, "bytes_each", json_real(bytes));
    (void)json_object_set_new(json, "idle_cpu", json_real(cpu));
    if (options_flag(options, "json")) {
        print_json(stdout, json);
    } else {
        printf("%u elections, of which the killed process led %u; in %u rounds also the log\n",
               bench->elections, bench->held, bench->led_log);
        figures_print(json, "fault until all are led");
        printf("%.0f bytes each in a process, %.2f %% of a core\n", bytes, 100 * cpu);
    }
    json_decref(json);
}

int bench_elections(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct bench_elections bench = {.elections = (unsigned)options_number(options, "elections"),
                                    .held = (unsigned)options_number(options, "held")};
    size_t rounds = (size_t)options_number(options, "rounds");
    double *ms = calloc(rounds, sizeof(*ms));
    struct baton_error error = {0};
    double cpu = 0;
    int code = ms ? BATON_OK : error_set(&error, BATON_ENOMEM, "out of memory");

    if (!code && bench.held > bench.elections) {
        code = error_set(&error, BATON_EINVAL, "--held %u: more than --elections %u", bench.held,
                         bench.elections);
    }
    if (!code) {
        interrupt_listen();
        code = prepare(&bench, &error);
        code = code ? code : run(&bench, ms, rounds, &cpu, &error);
        clean(&bench);
    }
    if (!code) {
        report(options, &bench, figures_of(ms, rounds), cpu);
    }
    free(ms);
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal()
           : code             ? command_fail(invocation, &error)
                              : EXIT_OK;
}
