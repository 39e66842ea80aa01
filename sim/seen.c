/* Small hash tables of a run, with open addressing. */
#include "sim/seen.h"

#include "sim/verdict.h"

/* The place that holds the key in this run, or the free one that it would take. */
static struct seen *seen_at(struct world *world, struct seen *table, uint64_t a, uint64_t b)
{
    uint64_t stamp = world->checks.stamp;
    uint64_t hash = (a * 0x9e3779b97f4a7c15u) ^ (b * 0xbf58476d1ce4e5b9u);
    size_t at = (size_t)((hash ^ (hash >> 32)) % SIM_SEEN_SIZE);

    for (size_t tries = 0; tries < SIM_SEEN_SIZE; tries++) {
        struct seen *seen = &table[at];
        if (seen->stamp != stamp || (seen->key_a == a && seen->key_b == b)) {
            return seen;
        }
        at = (at + 1) % SIM_SEEN_SIZE;
    }
    violated(world, "too-much", "more than %d terms or entries in one run", SIM_SEEN_SIZE);
}

uint64_t seen_value(struct world *world, struct seen *table, uint64_t a, uint64_t b)
{
    const struct seen *seen = seen_at(world, table, a, b);
    return seen->stamp == world->checks.stamp ? seen->value : 0;
}

uint64_t seen_first(struct world *world, struct seen *table, uint64_t a, uint64_t b, uint64_t value)
{
    struct seen *seen = seen_at(world, table, a, b);

    if (seen->stamp != world->checks.stamp) {
        *seen = (struct seen){.key_a = a, .key_b = b, .value = value, .stamp = world->checks.stamp};
    }
    return seen->value;
}
