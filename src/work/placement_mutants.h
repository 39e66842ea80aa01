/* Planted bugs, to show that the tests of placement find them. Only these compile them in
 * (BATON_MUTANTS); in the library PLACEMENT_MUTANT() is the constant false and leaves no code. */
#ifndef WORK_PLACEMENT_MUTANTS_H
#define WORK_PLACEMENT_MUTANTS_H

/* X(name, description) */
#define PLACEMENT_MUTANTS(X)                                                                       \
    X(ONE_LABEL_SUFFICES, "a node needs only the first of the labels")                             \
    X(LABEL_LOST, "a group needs only what its first item needs")                                  \
    X(MEMORY_NOT_COUNTED, "memory is not counted")                                                 \
    X(DEAD_KEEPS, "an item stays on a node that is not healthy")                                   \
    X(UNFIT_KEEPS, "an item stays on a node that lacks what it needs")                             \
    X(CORDONED_TAKES, "a cordoned node gets new items")                                            \
    X(PINNED_RELIEVES, "an overfilled node gives pinned items away")                               \
    X(DRAINING_KEEPS, "a draining node keeps what could move")                                     \
    X(OVERFILLS_UNASKED, "a node is overfilled although that is not allowed")                      \
    X(OVERFILLS_NEVER, "no node is overfilled although that is allowed")                           \
    X(OVERFILLED_KEEPS, "an overfilled node keeps what has room elsewhere")                        \
    X(GROUP_IGNORED, "items that belong together are placed one by one")                           \
    X(REST_WAITS, "the rest of a group does not follow where there is room")                       \
    X(STRAY_PULLED, "a pinned item follows its group")                                             \
    X(DISPLACES_EQUALS, "an item of the same priority is displaced")                               \
    X(DISPLACES_UNASKED, "every strategy displaces")                                               \
    X(DISPLACES_NEVER, "nothing is displaced")                                                     \
    X(DISPLACES_IN_VAIN, "what left for nothing does not come back")                               \
    X(DISPLACED_LOST, "a displaced item is not placed again")                                      \
    X(IMBALANCE_KEPT, "nothing moves for balance")                                                 \
    X(HYSTERESIS_IGNORED, "an imbalance below the hysteresis moves items")                         \
    X(LOADS_SWAPPED, "an item moves although the greater load does not become less")               \
    X(RANK_IGNORED, "the strategy capability does not look at what nodes have")                    \
    X(FAILURE_KEPT, "what found no room is not tried again when there is more")                    \
    X(TREE_STALE, "a search does not see what has changed since the beginning")                    \
    X(ONE_ROUND, "what waits is not tried again after others have moved")                          \
    X(WRONG_BIN_FIRST, "a search takes the first node with room, whatever its load")

enum placement_mutant {
    PLACEMENT_MUTANT_NONE,
#define PLACEMENT_MUTANT_ENUM(name, text) PLACEMENT_MUTANT_##name,
    PLACEMENT_MUTANTS(PLACEMENT_MUTANT_ENUM)
#undef PLACEMENT_MUTANT_ENUM
        PLACEMENT_MUTANT_COUNT
};

#ifdef BATON_MUTANTS
extern _Thread_local enum placement_mutant placement_mutant; /* in force; set by a test */
#define PLACEMENT_MUTANT(name) (placement_mutant == PLACEMENT_MUTANT_##name)
#else
#define PLACEMENT_MUTANT(name) (false)
#endif

#endif
