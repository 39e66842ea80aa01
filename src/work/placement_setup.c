/* Memory; labels become numbers, needs sets of labels, nodes bins of classes. */
#include "work/placement_int.h"

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
    size_t need_words, node_words;
};

static struct extent extent_of(const struct placement_problem *problem)
{
    struct extent extent = {.items = problem->item_count, .nodes = problem->node_count};

    for (size_t i = 0; i < extent.items; i++) {
        extent.need_words += count_words(problem->items[i].needs);
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
static size_t lay_out(struct work *work, char *base, const struct extent *extent)
{
    size_t items = extent->items, nodes = extent->nodes, words = extent->need_words;
    size_t used = 0;

    work->bins = carve(base, &used, nodes, sizeof(*work->bins));
    work->units = carve(base, &used, items, sizeof(*work->units));
    work->kept = carve(base, &used, items, sizeof(*work->kept));
    work->next_item = carve(base, &used, items, sizeof(*work->next_item));
    work->item_needs = carve(base, &used, items, sizeof(*work->item_needs));
    carve_intern(&work->texts, base, &used, items);
    carve_intern(&work->labels, base, &used, words);
    carve_intern(&work->groups, base, &used, items);
    carve_intern(&work->kinds, base, &used, nodes);
    work->needs = carve(base, &used, 2 * items, sizeof(*work->needs)); /* of items, and of groups */
    work->need_labels = carve(base, &used, 2 * words, sizeof(*work->need_labels));
    work->classes = carve(base, &used, nodes, sizeof(*work->classes));
    work->class_keys = carve(base, &used, 2 * nodes + extent->node_words, sizeof(uint32_t));
    work->label_first = carve(base, &used, words + 2, sizeof(*work->label_first));
    work->label_classes = carve(base, &used, extent->node_words, sizeof(*work->label_classes));
    work->class_bins = carve(base, &used, nodes, sizeof(*work->class_bins));
    work->branches = carve(base, &used, 4 * nodes, sizeof(*work->branches));
    work->queue = carve(base, &used, items, sizeof(*work->queue));
    work->waiting = carve(base, &used, items, sizeof(*work->waiting));
    work->scratch = carve(base, &used, nodes, sizeof(*work->scratch));
    return used;
}

/* ---- Needs ----------------------------------------------------------------------------------- */

uint32_t needs_add(struct work *work, uint32_t first)
{
    uint32_t *labels = work->need_labels + first;
    uint32_t count = make_set(labels, work->need_labels_used - first);

    work->need_labels_used = first + count;
    work->needs[work->needs_count] = (struct needs){.labels = labels, .count = count};
    return work->needs_count++;
}

static void read_needs(struct work *work)
{
    for (size_t i = 0; i < work->problem->item_count; i++) {
        const char *text = work->problem->items[i].needs;
        uint32_t first = work->need_labels_used;
        const char *word;
        size_t count;

        text = text ? text : "";
        work->item_needs[i] = intern_add(&work->texts, text, strlen(text));
        if (work->item_needs[i] < work->needs_count) {
            continue;
        }
        while ((word = next_word(&text, &count))) {
            work->need_labels[work->need_labels_used++] = intern_add(&work->labels, word, count);
        }
        (void)needs_add(work, first);
    }
}

bool class_has(const struct class *class, const struct needs *needs)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < needs->count; i++) {
        while (at < class->count && class->labels[at] < needs->labels[i]) {
            at++;
        }
        if (at == class->count || class->labels[at] != needs->labels[i]) {
            return false;
        }
    }
    return true;
}

const struct class *needs_next_class(const struct work *work, const struct needs *needs,
                                     uint32_t *at)
{
    while (*at < needs->candidate_count) {
        uint32_t number = needs->candidates ? needs->candidates[*at] : *at;
        const struct class *class = &work->classes[number];

        ++*at;
        if (class->bin_count > 0 && class_has(class, needs)) {
            return class;
        }
    }
    return NULL;
}

void needs_count_bins(struct work *work)
{
    for (uint32_t i = 0; i < work->needs_count; i++) {
        struct needs *needs = &work->needs[i];
        const struct class *class;

        needs->candidate_count = work->kinds.count;
        for (uint32_t j = 0; j < needs->count; j++) {
            const uint32_t *first = &work->label_first[needs->labels[j]];
            if (first[1] - first[0] <= needs->candidate_count) {
                needs->candidates = &work->label_classes[first[0]];
                needs->candidate_count = first[1] - first[0];
            }
        }
        for (uint32_t at = 0; (class = needs_next_class(work, needs, &at));) {
            needs->bins += class->bin_count;
        }
    }
}

/* ---- Bins and their classes ------------------------------------------------------------------ */

/* Two words of rank and then the labels that are needed by any unit, at `key`; returns how many
 * numbers that are. */
static uint32_t key_of(const struct work *work, const struct placement_node *node, uint32_t *key)
{
    const char *text = node->labels;
    uint32_t words = 0, count = 0;
    const char *word;
    size_t bytes;

    while ((word = next_word(&text, &bytes))) {
        uint32_t label = intern_find(&work->labels, word, bytes);
        if (label != INTERN_NONE) {
            key[2 + count++] = label;
        }
        words++;
    }
    bool is_ranked = work->problem->strategy == PLACEMENT_CAPABILITY;
    key[0] = is_ranked ? node->gpus : 0;
    key[1] = is_ranked ? words : 0;
    return 2 + make_set(key + 2, count);
}

static void read_node(struct work *work, uint32_t number, uint32_t *keys_used)
{
    const struct placement_node *node = &work->problem->nodes[number];
    uint32_t *key = work->class_keys + *keys_used;
    uint32_t count = key_of(work, node, key);
    uint32_t class = intern_add(&work->kinds, key, count * sizeof(*key));
    bool takes = node->is_healthy && !node->is_cordoned && !node->is_draining;

    *keys_used += count;
    work->bins[number] = (struct bin){.size = {node->slots, node->memory_mib, node->gpus},
                                      .class = class,
                                      .first = NOWHERE,
                                      .priority = INT32_MAX,
                                      .takes = takes};
    work->classes[class].labels = (const uint32_t *)work->kinds.known[class].bytes + 2;
    work->classes[class].count = (uint32_t)(work->kinds.known[class].count / sizeof(*key)) - 2;
    work->classes[class].rank = (uint64_t)key[0] << 32 | key[1];
    work->classes[class].bin_count += takes;
    work->takers += takes;
}

/* For each label the classes that have it. */
static void list_classes(struct work *work)
{
    uint32_t *first = work->label_first;

    for (uint32_t i = 0; i < work->kinds.count; i++) {
        for (uint32_t j = 0; j < work->classes[i].count; j++) {
            first[work->classes[i].labels[j] + 2]++;
        }
    }
    for (uint32_t i = 2; i < work->labels.count + 2; i++) {
        first[i] += first[i - 1];
    }
    for (uint32_t i = 0; i < work->kinds.count; i++) {
        for (uint32_t j = 0; j < work->classes[i].count; j++) {
            work->label_classes[first[work->classes[i].labels[j] + 1]++] = i;
        }
    }
}

/* Gives each class its part of the lists, and each bin its leaf. */
static void plant_trees(struct work *work)
{
    int32_t *bins = work->class_bins;
    struct branch *branches = work->branches;

    for (uint32_t i = 0; i < work->kinds.count; i++) {
        struct class *class = &work->classes[i];
        class->bins = bins;
        bins += class->bin_count;
        class->tree = branches;
        class->leaves = 1;
        while (class->leaves < class->bin_count) {
            class->leaves *= 2;
        }
        branches += class->bin_count > 0 ? 2 * (size_t) class->leaves : 0;
        class->bin_count = 0;
    }
    for (size_t i = 0; i < work->problem->node_count; i++) {
        struct bin *bin = &work->bins[i];
        struct class *class = &work->classes[bin->class];
        if (bin->takes) {
            bin->leaf = class->bin_count;
            work->class_bins[class->bins - work->class_bins + class->bin_count++] = (int32_t)i;
        }
    }
}

struct work *work_new(const struct placement_problem *problem)
{
    struct extent extent = extent_of(problem);
    struct work empty = {.problem = problem};
    size_t head = 0;
    (void)carve(NULL, &head, 1, sizeof(struct work));
    size_t bytes = head + lay_out(&empty, NULL, &extent);
    struct work *work = calloc(1, bytes);
    uint32_t keys_used = 0;

    if (!work) {
        return NULL;
    }
    *work = (struct work){.problem = problem, .bytes = bytes};
    (void)lay_out(work, (char *)work + head, &extent);
    read_needs(work);
    for (uint32_t i = 0; i < extent.nodes; i++) {
        read_node(work, i, &keys_used);
    }
    uint32_t average = (uint32_t)(extent.items / (work->takers > 0 ? work->takers : 1));
    work->mean = average > 0 ? average : 1;
    list_classes(work);
    plant_trees(work);
    return work;
}
