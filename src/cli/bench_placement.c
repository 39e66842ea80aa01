#include "cli/bench_placement.h"

#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "work/placement.h"

#include <stdio.h>
#include <stdlib.h>

enum { HYSTERESIS_PERMILLE = 100, TEXT_MAX = 16 };

/* What is measured, in this order in each round. */
enum step { STEP_ALL, STEP_LOST, STEP_ADDED, STEPS };

static const struct {
    const char *key;
    const char *title;
} steps[STEPS] = {
    [STEP_ALL] = {"all", "all items anew"},
    [STEP_LOST] = {"lost", "a worker is lost"},
    [STEP_ADDED] = {"added", "a worker is added"},
};

struct bench_placement {
    const struct options *options;
    uint64_t random;
    struct placement_problem problem;
    struct placement_node *nodes;
    struct placement_item *items;
    char (*groups)[TEXT_MAX];
    size_t rounds;
    double *ms[STEPS];
    size_t moved[STEPS];
    size_t waiting; /* items without a worker */
    size_t bytes;
};

/* ---- A pool ---------------------------------------------------------------------------------- */

static uint64_t draw(struct bench_placement *bench, uint64_t below)
{
    bench->random ^= bench->random << 13;
    bench->random ^= bench->random >> 7;
    bench->random ^= bench->random << 17;
    return bench->random % below;
}

/* One worker in four has two GPUs; three zones. There are slots for about half as many items more.
 */
static void make_nodes(struct bench_placement *bench)
{
    static const char *const labels[] = {"zone=a", "zone=b", "zone=c", "zone=a gpu", "zone=b gpu"};
    uint64_t each = bench->problem.item_count * 2 / bench->problem.node_count;

    for (size_t i = 0; i < bench->problem.node_count; i++) {
        bool has_gpu = i % 4 == 0;
        bench->nodes[i] = (struct placement_node){.name = "worker",
                                                  .slots = (uint32_t)(each + 1 + draw(bench, 8)),
                                                  .memory_mib = 1024 * (each + 1),
                                                  .gpus = has_gpu ? 2 : 0,
                                                  .labels = labels[has_gpu ? 3 + i / 4 % 2 : i % 3],
                                                  .is_healthy = true};
    }
}

/* Of weight 1 or 2; a third need a zone, one in fifty a GPU, one in twenty is of a group of four.
 */
static void make_items(struct bench_placement *bench)
{
    static const char *const zones[] = {"zone=a", "zone=b", "zone=c"};

    for (size_t i = 0; i < bench->problem.item_count; i++) {
        struct placement_item *item = &bench->items[i];
        *item = (struct placement_item){.id = "item", .node = PLACEMENT_NOWHERE};
        item->weight = 1 + (uint32_t)draw(bench, 2);
        item->priority = (int32_t)draw(bench, 3);
        item->memory_mib = 64 + draw(bench, 448);
        if (i % 80 < 4) {
            (void)snprintf(bench->groups[i], TEXT_MAX, "%zu", i / 80);
            item->together = bench->groups[i];
        } else if (i % 50 == 0) {
            item->needs = "gpu";
            item->gpus = 1;
        } else if (i % 3 == 0) {
            item->needs = zones[draw(bench, 3)];
        }
    }
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static int measure(struct bench_placement *bench, size_t round, enum step step)
{
    struct placement_answer answer;
    instant begun = clock_now();
    int code = placement_solve(&bench->problem, &answer);

    if (code) {
        return code;
    }
    bench->ms[step][round] = (double)instant_since(clock_now(), begun).ns / 1e6;
    bench->moved[step] += answer.moved;
    bench->waiting = bench->problem.item_count - answer.placed;
    bench->bytes = answer.bytes > bench->bytes ? answer.bytes : bench->bytes;
    for (size_t i = 0; i < bench->problem.item_count; i++) {
        bench->items[i].node = answer.places[i].node;
    }
    placement_answer_fini(&answer);
    return BATON_OK;
}

/* The worker that is lost comes back, empty. */
static int one_round(struct bench_placement *bench, size_t round)
{
    size_t lost;
    int code;

    bench->random = (round + 1) * 0x9e3779b97f4a7c15u;
    make_nodes(bench);
    make_items(bench);
    lost = draw(bench, bench->problem.node_count);
    code = measure(bench, round, STEP_ALL);
    bench->nodes[lost].is_healthy = false;
    code = code ? code : measure(bench, round, STEP_LOST);
    bench->nodes[lost].is_healthy = true;
    return code ? code : measure(bench, round, STEP_ADDED);
}

static int run(struct bench_placement *bench, struct baton_error *reterr)
{
    int code = BATON_OK;

    for (size_t i = 0; !code && !interrupt_signal() && i < bench->rounds; i++) {
        print_progress(stderr, "rounds", (double)i / (double)bench->rounds);
        code = one_round(bench, i);
    }
    print_progress(stderr, NULL, 0);
    return code ? error_set(reterr, code, "out of memory") : BATON_OK;
}

static bool prepare(struct bench_placement *bench)
{
    size_t nodes = (size_t)options_number(bench->options, "workers");
    size_t items = (size_t)options_number(bench->options, "items");
    bool has_all = true;

    bench->rounds = (size_t)options_number(bench->options, "rounds");
    bench->nodes = calloc(nodes, sizeof(*bench->nodes));
    bench->items = calloc(items, sizeof(*bench->items));
    bench->groups = calloc(items, sizeof(*bench->groups));
    for (int i = 0; i < STEPS; i++) {
        bench->ms[i] = calloc(bench->rounds, sizeof(*bench->ms[i]));
        has_all = has_all && bench->ms[i];
    }
    bench->problem = (struct placement_problem){.nodes = bench->nodes,
                                                .node_count = nodes,
                                                .items = bench->items,
                                                .item_count = items,
                                                .hysteresis_permille = HYSTERESIS_PERMILLE};
    return placement_strategy_parse(options_text(bench->options, "strategy"),
                                    &bench->problem.strategy) &&
           has_all && bench->nodes && bench->items && bench->groups;
}

static void clean(struct bench_placement *bench)
{
    for (int i = 0; i < STEPS; i++) {
        free(bench->ms[i]);
    }
    free(bench->nodes);
    free(bench->items);
    free(bench->groups);
}

/* ---- Figures --------------------------------------------------------------------------------- */

static json_t *evaluate(struct bench_placement *bench)
{
    json_t *json = json_pack(
        "{s:I,s:I,s:I,s:s,s:I,s:I}", "items", (json_int_t)bench->problem.item_count, "workers",
        (json_int_t)bench->problem.node_count, "rounds", (json_int_t)bench->rounds, "strategy",
        placement_strategy_name(bench->problem.strategy), "waiting", (json_int_t)bench->waiting,
        "bytes", (json_int_t)bench->bytes);

    for (int i = 0; i < STEPS; i++) {
        json_t *figures = figures_of(bench->ms[i], bench->rounds);
        (void)json_object_set_new(figures, "moved",
                                  json_real((double)bench->moved[i] / (double)bench->rounds));
        (void)json_object_set_new(json, steps[i].key, figures);
    }
    return json;
}

static void print_figures(const struct bench_placement *bench, const json_t *json)
{
    static const char *const keys[] = {"p50_ms", "p99_ms", "moved"};
    const char *cells[5 * (STEPS + 1) + 1] = {"", "P50 MS", "P99 MS", "MOVED", NULL};
    char texts[STEPS][3][32];
    size_t used = 5;

    for (int i = 0; i < STEPS; i++) {
        const json_t *figures = json_object_get(json, steps[i].key);
        cells[used++] = steps[i].title;
        for (size_t j = 0; j < 3; j++) {
            (void)snprintf(texts[i][j], sizeof(texts[i][j]), j < 2 ? "%.3f" : "%.1f",
                           json_number_value(json_object_get(figures, keys[j])));
            cells[used++] = texts[i][j];
        }
        cells[used++] = NULL;
    }
    printf("%s, %zu items, %zu workers, %zu rounds\n",
           placement_strategy_name(bench->problem.strategy), bench->problem.item_count,
           bench->problem.node_count, bench->rounds);
    print_table(stdout, cells);
    printf("%zu bytes while it computes; %zu items without a worker\n", bench->bytes,
           bench->waiting);
}

int bench_placement(const struct invocation *invocation)
{
    struct bench_placement bench = {.options = invocation->options};
    struct baton_error error = {0};
    int code;

    interrupt_listen();
    code = prepare(&bench) ? run(&bench, &error) : error_set(&error, BATON_ENOMEM, "out of memory");
    if (!code && !interrupt_signal()) {
        json_t *json = evaluate(&bench);
        if (options_flag(invocation->options, "json")) {
            print_json(stdout, json);
        } else {
            print_figures(&bench, json);
        }
        json_decref(json);
    }
    clean(&bench);
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal()
           : code             ? command_fail(invocation, &error)
                              : EXIT_OK;
}
