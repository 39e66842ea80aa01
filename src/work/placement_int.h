/* The state of one calculation, and the functions of its parts:
 *
 *   placement_setup.c   memory; labels become numbers, nodes bins of classes
 *   placement_units.c   items become units, and keep today's node or wait for one
 *   placement_search.c  the bin for a unit; what it means to be put there
 *   placement.c         the steps, and the answer
 */
#ifndef WORK_PLACEMENT_INT_H
#define WORK_PLACEMENT_INT_H

#include "work/placement.h"
#include "work/placement_intern.h"

struct amount {
    uint64_t weight;
    uint64_t memory;
    uint64_t gpus;
};

/* A set of labels that units need. */
struct needs {
    const uint32_t *labels; /* sorted */
    uint32_t count;
    /* The classes that may have them all: those with the scarcest of the labels. NULL: all. */
    const uint32_t *candidates;
    uint32_t candidate_count;
    uint32_t bins;        /* that have them all and take new units */
    bool has_failed;      /* no bin had room … */
    struct amount failed; /* … for this, … */
    uint64_t failed_at;   /* … when work->freed was this */
};

/* An item, or the items of one group. */
struct unit {
    struct amount amount;
    uint32_t items;
    int32_t first_item; /* the others follow by work->next_item */
    uint32_t needs;
    int32_t priority;   /* the highest of its items */
    int32_t bin;        /* where all of it is; NOWHERE: it waits */
    int32_t home;       /* where all of it was today, or NOWHERE */
    int32_t anchor;     /* waits: where most of the group is, and may be; else NOWHERE */
    bool is_pinned;     /* moves to its anchor only */
    bool is_scattered;  /* waits: some of its items have bins, by work->kept */
    bool is_displaced;  /* waits: a more important unit took its place */
    int32_t prev, next; /* in the list of its bin */
    enum placement_reason reason;
};

/* A node. */
struct bin {
    struct amount size;
    struct amount used;
    uint32_t items;
    uint64_t load;
    uint32_t class;
    uint32_t leaf;    /* in the tree of its class, if it takes units */
    int32_t first;    /* of its units; NOWHERE: none */
    int32_t priority; /* the lowest of a unit that can move; INT32_MAX: none */
    bool takes;       /* new units */
};

/* What holds for the bins below a node of a tree. */
struct branch {
    uint64_t load; /* the least, and the first bin that has it */
    int32_t bin;
    int32_t priority;   /* the lowest */
    struct amount free; /* at most */
};

/* Bins that have the same labels, as far as a unit needs them, and the same rank. Those that take
 * units are the leaves of a tree of 2 * leaves nodes; the root is 1, below i are 2i and 2i + 1. */
struct class
{
    const uint32_t *labels; /* sorted */
    uint32_t count;
    uint64_t rank; /* PLACEMENT_CAPABILITY: what its bins have; else 0 */
    const int32_t *bins;
    uint32_t bin_count; /* that take units */
    struct branch *tree;
    uint32_t leaves; /* a power of two */
};

struct work {
    const struct placement_problem *problem;
    size_t bytes;    /* of this memory */
    uint64_t freed;  /* how often a unit left a bin */
    uint32_t mean;   /* items of an average bin */
    uint32_t takers; /* bins that take units */
    bool has_trees;

    struct bin *bins;
    struct unit *units;
    uint32_t unit_count;
    int32_t *kept;        /* of each item: today's bin if it may stay there, else NOWHERE */
    int32_t *next_item;   /* of the same unit; NOWHERE: the last */
    uint32_t *item_needs; /* of each item */
    struct intern texts;  /* of needs; their numbers are those of `needs` */
    struct intern labels; /* that are needed */
    struct intern groups; /* their numbers are those of the first units */
    struct intern kinds;  /* of bins; their numbers are those of `classes` */
    struct needs *needs;
    uint32_t needs_count;
    uint32_t *need_labels; /* what the needs have, one after the other */
    uint32_t need_labels_used;
    struct class *classes;
    uint32_t *class_keys;    /* rank and labels of each bin */
    uint32_t *label_first;   /* of each label: where its classes begin … */
    uint32_t *label_classes; /* … in this list */
    int32_t *class_bins;
    struct branch *branches;
    uint32_t *queue; /* a heap of units, the next one first */
    uint32_t queued;
    uint32_t *waiting; /* units that have found no bin */
    uint32_t waiting_count;
    uint32_t *scratch; /* a number for each bin, 0 between calls */
};

#define NOWHERE PLACEMENT_NOWHERE

/* ---- placement_setup.c ----------------------------------------------------------------------- */

/* NULL: out of memory. The units are still to be made. */
struct work *work_new(const struct placement_problem *problem);
/* The needs of several items: the labels from `first` on in work->need_labels, which become sorted
 * and different. */
uint32_t needs_add(struct work *work, uint32_t first);
/* After the last needs. */
void needs_count_bins(struct work *work);
bool class_has(const struct class *class, const struct needs *needs);
/* The next class that has them; *at counts on from 0. NULL: no more. */
const struct class *needs_next_class(const struct work *work, const struct needs *needs,
                                     uint32_t *at);

/* ---- placement_units.c ----------------------------------------------------------------------- */

void units_make(struct work *work);

/* ---- placement_search.c ---------------------------------------------------------------------- */

bool amount_fits(const struct amount *amount, const struct amount *room);
struct amount bin_free(const struct bin *bin);
/* Builds all trees, for the bins as they are. */
void trees_build(struct work *work);
/* Counts items in the bin, or no longer, without a unit. */
void bin_charge(struct work *work, int32_t bin, const struct amount *amount, uint32_t items);
void bin_discharge(struct work *work, int32_t bin, const struct amount *amount, uint32_t items);
/* Puts all of a unit there. It was nowhere. */
void unit_put(struct work *work, struct unit *unit, int32_t bin);
/* Takes a whole unit out of its bin. */
void unit_take(struct work *work, struct unit *unit);
/* The first bin by the strategy that has what the unit needs and room for this amount. */
int32_t find_bin(struct work *work, const struct unit *unit, const struct amount *amount);
/* The least loaded bin that has that, other than the unit's own, and of no higher rank. */
int32_t find_lighter_bin(const struct work *work, const struct unit *unit,
                         const struct amount *amount);
/* The load of a bin if it had this. */
uint64_t bin_load_with(const struct work *work, int32_t bin, uint64_t weight, uint32_t items);

#endif
