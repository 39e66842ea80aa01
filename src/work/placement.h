/* Places items of work on nodes: a pure function of the nodes, the items and where they are today.
 *
 *   nodes ─┐
 *   items ─┴▶ placement_solve ─▶ for each item its node, or the reason why it has none
 *
 * The same problem has the same answer everywhere: no clock, no I/O and no randomness.
 *
 * Rules that every answer keeps:
 *   - an item is on a healthy node that has every label that the item needs, and enough memory and
 *     GPUs for all that is there;
 *   - a node is filled beyond its slots only if no other node could take the item, and `overfills`
 *     allows it;
 *   - items of one `together` key are on one node;
 *   - a pinned item stays where it is while that node is healthy;
 *   - nothing new comes to a node that is cordoned or draining;
 *   - an item that has a node keeps one. It loses it only to an item of a higher priority
 *     (PLACEMENT_PRIORITY), or if the node is not healthy or no longer has what the item needs, and
 *     no other node has room.
 * Today's places may break a rule: a node has become smaller, or a key has been given to items that
 * are apart. Such items move as soon as there is room, and until then they stay.
 *
 * Nothing else moves, but for balance: from a node whose load is above that of another one by more
 * than the hysteresis, and only so that the greater load of the two becomes less. The answer to an
 * answer is the same answer, without a move.
 */
#ifndef WORK_PLACEMENT_H
#define WORK_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(symbol, name): which node an item goes to, of those that have room for it. */
#define PLACEMENT_STRATEGIES(X)                                                                    \
    X(PLACEMENT_ROUND_ROBIN, "round-robin")   /* the fewest items, then the order of the nodes */  \
    X(PLACEMENT_LEAST_LOADED, "least-loaded") /* the least load */                                 \
    X(PLACEMENT_CAPABILITY, "capability")     /* the fewest GPUs, then labels; then least load */  \
    X(PLACEMENT_PRIORITY, "priority")         /* as least-loaded; higher priorities displace */

enum placement_strategy {
#define PLACEMENT_STRATEGY_ENUM(symbol, name) symbol,
    PLACEMENT_STRATEGIES(PLACEMENT_STRATEGY_ENUM)
#undef PLACEMENT_STRATEGY_ENUM
};

/* X(symbol, text): the first two have a node, the others have none. */
#define PLACEMENT_REASONS(X)                                                                       \
    X(PLACEMENT_PLACED, "placed")                                                                  \
    X(PLACEMENT_OVERFILLS, "placed on a node that has no room for it, as no other has")            \
    X(PLACEMENT_NO_NODES, "no healthy node takes new items")                                       \
    X(PLACEMENT_NO_CAPABLE_NODE, "no node has what it needs")                                      \
    X(PLACEMENT_NO_ROOM, "no node that has what it needs has room")                                \
    X(PLACEMENT_ITEM_TOO_LARGE, "larger than every node that has what it needs")                   \
    X(PLACEMENT_GROUP_TOO_LARGE, "its group is larger than every node that has what it needs")     \
    X(PLACEMENT_GROUP_HELD, "an item of its group is pinned to a node that cannot take it")        \
    X(PLACEMENT_DISPLACED, "items of a higher priority took its place")

enum placement_reason {
#define PLACEMENT_REASON_ENUM(symbol, text) symbol,
    PLACEMENT_REASONS(PLACEMENT_REASON_ENUM)
#undef PLACEMENT_REASON_ENUM
};

enum { PLACEMENT_NOWHERE = -1 };

/* All texts are borrowed during the call. */
struct placement_node {
    const char *name;      /* for people; the order of the nodes decides, not their names */
    uint32_t slots;        /* capacity, in units of weight */
    uint32_t cpu_permille; /* load that its items do not cause; 0: none, or not known */
    uint64_t memory_mib;
    uint32_t gpus;
    const char *labels; /* different words, separated by spaces: "gpu zone=a"; NULL: none */
    bool is_healthy;
    bool is_cordoned; /* keeps what it has, and gets nothing new */
    bool is_draining; /* gets nothing new, and gives away what can move */
};

struct placement_item {
    const char *id; /* for people */
    uint32_t weight;
    int32_t priority;  /* higher is more important; only PLACEMENT_PRIORITY reads it */
    const char *needs; /* labels, all of which its node must have; NULL: none */
    uint64_t memory_mib;
    uint32_t gpus;
    const char *together; /* items with the same key share a node; NULL: alone */
    int32_t node;         /* index of today's, or PLACEMENT_NOWHERE */
    bool is_pinned;       /* it runs and must not be moved */
};

struct placement_problem {
    const struct placement_node *nodes;
    size_t node_count; /* at most INT32_MAX, as item_count */
    const struct placement_item *items;
    size_t item_count;
    enum placement_strategy strategy;
    /* The difference of two loads that causes no move. A load is weight / slots + cpu_permille /
     * 1000; under PLACEMENT_ROUND_ROBIN it is the number of items / that of an average node. */
    uint32_t hysteresis_permille;
    /* An item for which no node has room goes to the least loaded node that has what it needs; its
     * memory and GPUs must be free. False: it stays without a node. */
    bool overfills;
};

struct placement_place {
    int32_t node; /* or PLACEMENT_NOWHERE */
    enum placement_reason reason;
};

struct placement_answer {
    struct placement_place *places; /* of each item, in the order of the items */
    size_t placed;                  /* items that have a node */
    size_t started;                 /* items that have a node and had none */
    size_t moved;                   /* items that had another node */
    size_t stopped;                 /* items that have none and had one */
    size_t bytes;                   /* of memory that the calculation took */
};

/* BATON_ENOMEM: the answer is unchanged. Free it by placement_answer_fini(). */
int placement_solve(const struct placement_problem *problem, struct placement_answer *ret);
void placement_answer_fini(struct placement_answer *answer);

const char *placement_reason_text(enum placement_reason reason);
const char *placement_strategy_name(enum placement_strategy strategy);
/* False: there is no such strategy. */
bool placement_strategy_parse(const char *name, enum placement_strategy *ret);

#endif
