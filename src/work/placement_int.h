/* The state of one calculation, and the functions of its parts:
 *
 *   placement_setup.c   memory; labels become numbers, nodes bins of kinds
 *   placement_units.c   items become units, and keep today's node or wait for one
 *   placement_search.c  the bin for a unit; what it means to be put there
 *   placement_queue.c   which unit is next
 *   placement_place.c   placing what waits
 *   placement_balance.c moving what has a place
 *   placement.c         the steps, and the answer
 */
#ifndef WORK_PLACEMENT_INT_H
#define WORK_PLACEMENT_INT_H

#include "work/placement.h"
#include "work/placement_intern.h"

#define NOWHERE PLACEMENT_NOWHERE

enum dimension { WEIGHT, MEMORY, GPUS, DIMENSIONS };

struct amount {
    uint64_t of[DIMENSIONS];
};

/* No way was found for a unit of this amount and priority. The same is true of larger and less
 * important ones until a bin has more room. */
struct failure {
    bool is_known;
    uint64_t freed; /* solver->freed then */
    int32_t priority;
    struct amount amount;
};

/* A set of labels that units need. */
struct needs {
    const uint32_t *labels; /* sorted */
    uint32_t count;
    /* The kinds that may have them all: those with the scarcest of the labels. NULL: all. */
    const uint32_t *candidates;
    uint32_t candidate_count;
    uint32_t bins;          /* that have them all and take units */
    uint64_t lightest;      /* the least load of these bins … */
    uint64_t lightest_at;   /* … when solver->changes was this … */
    uint64_t lightest_rank; /* … and of those up to this rank */
    struct failure no_room;
    struct failure no_moving;     /* no units can move to make room */
    struct failure no_displacing; /* no units can be displaced to make room */
};

/* An item, or the items of one group. */
struct unit {
    struct amount amount;
    uint32_t items;
    int32_t first_item; /* the others follow by solver->next_item */
    uint32_t needs;
    int32_t priority;   /* the highest of its items */
    int32_t bin;        /* where all of it is; NOWHERE: it waits */
    int32_t anchor;     /* where most of the group is, and may be; else NOWHERE */
    bool is_pinned;     /* goes to its anchor only, and stays there */
    bool is_scattered;  /* waits: some of its items have bins, by solver->kept */
    bool is_displaced;  /* waits: a more important unit took its place */
    int32_t prev, next; /* in the list of its bin */
};

/* A node. */
struct bin {
    struct amount size;
    struct amount used;
    uint32_t items;
    uint64_t load;
    uint32_t kind;
    uint32_t leaf;    /* in the tree of its kind, if it takes units */
    int32_t first;    /* of its units; NOWHERE: none */
    int32_t priority; /* the lowest of a unit that can move; INT32_MAX: none */
    uint32_t lowest;  /* units of that priority */
    bool takes;       /* new units */
    uint32_t donor;   /* its index in solver->donors */
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
struct kind {
    const uint32_t *labels; /* sorted */
    uint32_t count;
    uint64_t rank; /* PLACEMENT_CAPABILITY: what its bins have; else 0 */
    const int32_t *bins;
    uint32_t bin_count; /* that take units */
    struct branch *tree;
    uint32_t leaves; /* a power of two */
};

/* Which unit of a queue comes first. Equals come in the order of their numbers. A unit is hard to
 * place if few bins have what it needs, if it needs GPUs, and if it is heavy; under
 * PLACEMENT_PRIORITY its priority counts before that. */
enum queue_order {
    HARDEST_FIRST,
    LARGEST_FIRST,         /* in one dimension */
    LEAST_IMPORTANT_FIRST, /* by priority, and then the heaviest */
};

/* A heap of units. */
struct unit_queue {
    uint32_t *units;
    uint32_t count;
    enum queue_order order;
    enum dimension dimension; /* of LARGEST_FIRST */
};

struct solver {
    const struct placement_problem *problem;
    size_t bytes; /* of this memory */
    bool has_trees;
    uint32_t mean;      /* items of an average bin */
    uint32_t takers;    /* bins that take units */
    uint64_t changes;   /* of bins */
    uint64_t freed;     /* another number whenever a bin has more room than before … */
    uint64_t stamp;     /* … and the last one of these that was used */
    struct amount free; /* of all bins that take units */

    struct bin *bins;
    struct unit *units;
    uint32_t unit_count;
    int32_t *kept;        /* of each item: today's bin if it may stay there, else NOWHERE */
    int32_t *next_item;   /* of the same unit; NOWHERE: the last */
    uint32_t *item_needs; /* of each item */
    struct intern texts;  /* of needs; their numbers are those of `needs` */
    struct intern labels; /* that are needed */
    struct intern groups; /* their numbers are those of the first units */
    struct intern keys;   /* of kinds; their numbers are those of `kinds` */
    struct needs *needs;
    uint32_t needs_count;
    uint32_t *need_labels; /* what the needs have, one after the other */
    uint32_t need_labels_used;
    struct kind *kinds;
    uint32_t *key_numbers; /* rank and labels of each kind */
    uint32_t *label_first; /* of each label: where its kinds begin … */
    uint32_t *label_kinds; /* … in this list */
    int32_t *kind_bins;
    struct branch *branches;

    uint32_t *waiting; /* units without a bin */
    uint32_t waiting_count;
    struct unit_queue queue;   /* of units that are to be placed now */
    struct unit_queue leaving; /* of units that may leave their bins */
    uint32_t *left;            /* units that have left a bin */
    uint32_t looks;            /* in this round, to find units that could make room */
    int32_t *donors;           /* a heap of bins, for balance */
    uint32_t donor_count;
    uint32_t *scratch; /* a number for each bin, 0 between calls */
};

/* ---- placement_setup.c ----------------------------------------------------------------------- */

/* NULL: out of memory. The units are still to be made. */
struct solver *solver_new(const struct placement_problem *problem);
/* The needs of several items: the labels from `first` on in solver->need_labels, which become
 * sorted and different. */
uint32_t needs_add(struct solver *solver, uint32_t first);
/* After the last needs. */
void needs_count_bins(struct solver *solver);
bool kind_has(const struct kind *kind, const struct needs *needs);
/* The next kind that has them; *at counts on from 0. NULL: no more. */
const struct kind *needs_next_kind(const struct solver *solver, const struct needs *needs,
                                   uint32_t *at);

/* ---- placement_units.c ----------------------------------------------------------------------- */

void units_make(struct solver *solver);
struct amount item_amount(const struct solver *solver, int32_t item);

/* ---- placement_search.c ---------------------------------------------------------------------- */

#define LOAD_PERMILLE UINT64_C(1000)

bool amount_fits(const struct amount *amount, const struct amount *room);
struct amount bin_free(const struct bin *bin);
/* The load of a bin if it had this. */
uint64_t bin_load_with(const struct solver *solver, int32_t bin, uint64_t weight, uint32_t items);
/* Builds all trees, for the bins as they are. */
void trees_build(struct solver *solver);
/* Counts items in the bin, or no longer, without a unit. */
void bin_charge(struct solver *solver, int32_t bin, const struct amount *amount, uint32_t items);
void bin_discharge(struct solver *solver, int32_t bin, const struct amount *amount, uint32_t items);
/* Puts all of a unit there. It was nowhere. */
void unit_put(struct solver *solver, struct unit *unit, int32_t bin);
/* Takes a whole unit out of its bin. */
void unit_take(struct solver *solver, struct unit *unit);
bool failure_holds(const struct solver *solver, const struct failure *failure,
                   const struct unit *unit);
void failure_note(const struct solver *solver, struct failure *failure, const struct unit *unit);
/* The first bin by the strategy that has what the unit needs and room for this amount, but for one
 * bin (NOWHERE: any). */
int32_t solver_find_bin(struct solver *solver, const struct unit *unit, const struct amount *amount,
                        int32_t except);
/* The least loaded bin that has that, other than the unit's own, and of no higher rank. */
int32_t solver_find_lighter_bin(const struct solver *solver, const struct unit *unit,
                                const struct amount *amount);
/* The least load of the bins that have what is needed and no higher rank; and of all bins. */
uint64_t needs_lightest_load(const struct solver *solver, uint32_t needs, uint64_t rank);
uint64_t solver_least_load(const struct solver *solver);

/* ---- placement_queue.c ----------------------------------------------------------------------- */

void unit_queue_push(const struct solver *solver, struct unit_queue *queue,
                     const struct unit *unit);
struct unit *unit_queue_pop(const struct solver *solver,
                            struct unit_queue *queue); /* NULL: empty */

/* ---- placement_place.c ----------------------------------------------------------------------- */

/* A bin with room, or one to overfill where that is allowed. */
int32_t solver_choose_bin(struct solver *solver, const struct unit *unit);
/* All units that wait, as far as there is room. Returns whether more may be possible then. */
bool solver_place_waiting(struct solver *solver);

/* ---- placement_balance.c ----------------------------------------------------------------------
 */

/* Return whether any unit has moved. */
bool solver_drain(struct solver *solver);
bool solver_relieve(struct solver *solver);
bool solver_balance(struct solver *solver);

#endif
