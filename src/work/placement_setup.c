/* Memory; labels become numbers, needs sets of labels, nodes bins of kinds. */
#include "work/placement_int.h"
#include "work/placement_mutants.h"

#include <stdlib.h>
#include <string.h>

/* ---- Words ----------------------------------------------------------------------------------- */

/* The next word of a text, or NULL. */
static const char *next_word(const char **text, size_t *ret_count)
{
    const char *word = *text;

    if (!word) {
        return NULL;
    }
    word += strspn(word, " ");
    *ret_count = strcspn(word, " ");
    *text = word + *ret_count;
    return *ret_count > 0 ? word : NULL;
}

static size_t count_words(const char *text)
{
    size_t count = 0;

    for (size_t bytes; next_word(&text, &bytes);) {
        count++;
    }
    return count;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Sorted and different; returns how many are left. */
static uint32_t make_set(uint32_t *numbers, uint32_t count)
{
    uint32_t kept = 0;

    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || numbers[kept - 1] != numbers[i]) {
            numbers[kept++] = numbers[i];
        }
    }
    return kept;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* How many of each there may be. */
struct extent {
    size_t items, nodes;
    size_t needs; /* of items, and of groups */
    size_t need_words, node_words;
};

static struct extent extent_of(const struct placement_problem *problem)
{
    struct extent extent = {.items = problem->item_count, .nodes = problem->node_count, .needs = 1};

    for (size_t i = 0; i < extent.items; i++) {
        const struct placement_item *item = &problem->items[i];
        extent.need_words += count_words(item->needs);
        extent.needs += (item->needs ? 1u : 0) + (item->together ? 1u : 0);
    }
    for (size_t i = 0; i < extent.nodes; i++) {
        extent.node_words += count_words(problem->nodes[i].labels);
    }
    return extent;
}

/* Cuts the next part off the memory at `base`; NULL: only counts. */
static void *carve(char *base, size_t *used, size_t count, size_t bytes)
{
    void *part = base ? base + *used : NULL;

    *used += (count * bytes + 15) / 16 * 16;
    return part;
}

static void carve_intern(struct intern *intern, char *base, size_t *used, size_t count)
{
    size_t slots = intern_slots(count);

    intern->known = carve(base, used, count, sizeof(*intern->known));
    intern->slots = carve(base, used, slots, sizeof(*intern->slots));
    intern->mask = (uint32_t)slots - 1;
}

/* Returns how many bytes follow `base`. */
static size_t lay_out(struct solver *solver, char *base, const struct extent *extent)
{
    size_t items = extent->items, nodes = extent->nodes, words = extent->need_words;
    size_t used = 0;

    solver->bins = carve(base, &used, nodes, sizeof(*solver->bins));
    solver->units = carve(base, &used, items, sizeof(*solver->units));
    solver->kept = carve(base, &used, items, sizeof(*solver->kept));
    solver->next_item = carve(base, &used, items, sizeof(*solver->next_item));
    solver->item_needs = carve(base, &used, items, sizeof(*solver->item_needs));
    carve_intern(&solver->texts, base, &used, items);
    carve_intern(&solver->labels, base, &used, words);
    carve_intern(&solver->groups, base, &used, items);
    carve_intern(&solver->keys, base, &used, nodes);
    solver->needs = carve(base, &used, extent->needs, sizeof(*solver->needs));
    solver->need_labels = carve(base, &used, 2 * words, sizeof(*solver->need_labels));
    solver->kinds = carve(base, &used, nodes, sizeof(*solver->kinds));
    solver->key_numbers = carve(base, &used, 2 * nodes + extent->node_words, sizeof(uint32_t));
    solver->label_first = carve(base, &used, words + 2, sizeof(*solver->label_first));
    solver->label_kinds = carve(base, &used, extent->node_words, sizeof(*solver->label_kinds));
    solver->kind_bins = carve(base, &used, nodes, sizeof(*solver->kind_bins));
    solver->branches = carve(base, &used, 4 * nodes, sizeof(*solver->branches));
    solver->waiting = carve(base, &used, items, sizeof(*solver->waiting));
    solver->queue.units = carve(base, &used, items, sizeof(*solver->queue.units));
    solver->leaving.units = carve(base, &used, items, sizeof(*solver->leaving.units));
    solver->left = carve(base, &used, items, sizeof(*solver->left));
    solver->donors = carve(base, &used, nodes, sizeof(*solver->donors));
    solver->scratch = carve(base, &used, nodes, sizeof(*solver->scratch));
    return used;
}

/* ---- Needs ----------------------------------------------------------------------------------- */

uint32_t needs_add(struct solver *solver, uint32_t first)
{
    uint32_t *labels = solver->need_labels + first;
    uint32_t count = make_set(labels, solver->need_labels_used - first);

    solver->need_labels_used = first + count;
    solver->needs[solver->needs_count] = (struct needs){.labels = labels, .count = count};
    return solver->needs_count++;
}

static void read_needs(struct solver *solver)
{
    for (size_t i = 0; i < solver->problem->item_count; i++) {
        const char *text = solver->problem->items[i].needs;
        uint32_t first = solver->need_labels_used;
        const char *word;
        size_t count;

        text = text ? text : "";
        solver->item_needs[i] = intern_add(&solver->texts, text, strlen(text));
        if (solver->item_needs[i] < solver->needs_count) {
            continue;
        }
        while ((word = next_word(&text, &count))) {
            solver->need_labels[solver->need_labels_used++] =
                intern_add(&solver->labels, word, count);
        }
        (void)needs_add(solver, first);
    }
}

bool kind_has(const struct kind *kind, const struct needs *needs)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < needs->count; i++) {
        while (at < kind->count && kind->labels[at] < needs->labels[i]) {
            at++;
        }
        if (at == kind->count || kind->labels[at] != needs->labels[i]) {
            return PLACEMENT_MUTANT(ONE_LABEL_SUFFICES) && i > 0;
        }
    }
    return true;
}

const struct kind *needs_next_kind(const struct solver *solver, const struct needs *needs,
                                   uint32_t *at)
{
    while (*at < needs->candidate_count) {
        uint32_t number = needs->candidates ? needs->candidates[*at] : *at;
        const struct kind *kind = &solver->kinds[number];

        ++*at;
        if (kind->bin_count > 0 && kind_has(kind, needs)) {
            return kind;
        }
    }
    return NULL;
}

void needs_count_bins(struct solver *solver)
{
    for (uint32_t i = 0; i < solver->needs_count; i++) {
        struct needs *needs = &solver->needs[i];
        const struct kind *kind;

        needs->candidate_count = solver->keys.count;
        for (uint32_t j = 0; j < needs->count; j++) {
            const uint32_t *first = &solver->label_first[needs->labels[j]];
            if (first[1] - first[0] <= needs->candidate_count) {
                needs->candidates = &solver->label_kinds[first[0]];
                needs->candidate_count = first[1] - first[0];
            }
        }
        for (uint32_t at = 0; (kind = needs_next_kind(solver, needs, &at));) {
            needs->bins += kind->bin_count;
        }
    }
}

/* ---- Bins and their kinds -------------------------------------------------------------------- */

/* Two words of rank and then the labels that are needed by any unit, at `key`; returns how many
 * numbers that are. */
static uint32_t key_of(const struct solver *solver, const struct placement_node *node,
                       uint32_t *key)
{
    const char *text = node->labels;
    uint32_t words = 0, count = 0;
    const char *word;
    size_t bytes;

    while ((word = next_word(&text, &bytes))) {
        uint32_t label = intern_find(&solver->labels, word, bytes);
        if (label != INTERN_NONE) {
            key[2 + count++] = label;
        }
        words++;
    }
    bool is_ranked =
        solver->problem->strategy == PLACEMENT_CAPABILITY && !PLACEMENT_MUTANT(RANK_IGNORED);
    key[0] = is_ranked ? node->gpus : 0;
    key[1] = is_ranked ? words : 0;
    return 2 + make_set(key + 2, count);
}

static void read_node(struct solver *solver, uint32_t number, uint32_t *keys_used)
{
    const struct placement_node *node = &solver->problem->nodes[number];
    uint32_t *key = solver->key_numbers + *keys_used;
    uint32_t count = key_of(solver, node, key);
    uint32_t kind = intern_add(&solver->keys, key, count * sizeof(*key));
    bool takes = node->is_healthy && !node->is_draining &&
                 (!node->is_cordoned || PLACEMENT_MUTANT(CORDONED_TAKES));

    *keys_used += count;
    solver->bins[number] = (struct bin){.size = {{node->slots, node->memory_mib, node->gpus}},
                                        .kind = kind,
                                        .first = NOWHERE,
                                        .priority = INT32_MAX,
                                        .takes = takes};
    solver->kinds[kind].labels = (const uint32_t *)solver->keys.known[kind].bytes + 2;
    solver->kinds[kind].count = (uint32_t)(solver->keys.known[kind].count / sizeof(*key)) - 2;
    solver->kinds[kind].rank = (uint64_t)key[0] << 32 | key[1];
    solver->kinds[kind].bin_count += takes;
    solver->takers += takes;
}

/* For each label the kinds that have it. */
static void list_kinds(struct solver *solver)
{
    uint32_t *first = solver->label_first;

    for (uint32_t i = 0; i < solver->keys.count; i++) {
        for (uint32_t j = 0; j < solver->kinds[i].count; j++) {
            first[solver->kinds[i].labels[j] + 2]++;
        }
    }
    for (uint32_t i = 2; i < solver->labels.count + 2; i++) {
        first[i] += first[i - 1];
    }
    for (uint32_t i = 0; i < solver->keys.count; i++) {
        for (uint32_t j = 0; j < solver->kinds[i].count; j++) {
            solver->label_kinds[first[solver->kinds[i].labels[j] + 1]++] = i;
        }
    }
}

/* Gives each kind its part of the lists, and each bin its leaf. */
static void plant_trees(struct solver *solver)
{
    int32_t *bins = solver->kind_bins;
    struct branch *branches = solver->branches;

    for (uint32_t i = 0; i < solver->keys.count; i++) {
        struct kind *kind = &solver->kinds[i];
        kind->bins = bins;
        bins += kind->bin_count;
        kind->tree = branches;
        kind->leaves = 1;
        while (kind->leaves < kind->bin_count) {
            kind->leaves *= 2;
        }
        branches += kind->bin_count > 0 ? 2 * (size_t)kind->leaves : 0;
        kind->bin_count = 0;
    }
    for (size_t i = 0; i < solver->problem->node_count; i++) {
        struct bin *bin = &solver->bins[i];
        struct kind *kind = &solver->kinds[bin->kind];
        if (bin->takes) {
            bin->leaf = kind->bin_count;
            solver->kind_bins[kind->bins - solver->kind_bins + kind->bin_count++] = (int32_t)i;
        }
    }
}

struct solver *solver_new(const struct placement_problem *problem)
{
    struct extent extent = extent_of(problem);
    struct solver empty = {.problem = problem};
    size_t head = 0;
    (void)carve(NULL, &head, 1, sizeof(struct solver));
    size_t bytes = head + lay_out(&empty, NULL, &extent);
    struct solver *solver = calloc(1, bytes);
    uint32_t keys_used = 0;

    if (!solver) {
        return NULL;
    }
    *solver = (struct solver){.problem = problem, .bytes = bytes};
    (void)lay_out(solver, (char *)solver + head, &extent);
    read_needs(solver);
    for (uint32_t i = 0; i < extent.nodes; i++) {
        read_node(solver, i, &keys_used);
    }
    uint32_t average = (uint32_t)(extent.items / (solver->takers > 0 ? solver->takers : 1));
    solver->mean = average > 0 ? average : 1;
    list_kinds(solver);
    plant_trees(solver);
    return solver;
}
