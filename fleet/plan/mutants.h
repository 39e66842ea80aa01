/* Planted bugs, to show that the tests of plans find them. Only these compile them in
 * (BATON_MUTANTS); in the library PLAN_MUTANT() is the constant false and leaves no code. Pure. */
#ifndef FLEET_PLAN_MUTANTS_H
#define FLEET_PLAN_MUTANTS_H

/* X(name, description) */
#define PLAN_MUTANTS(X)                                                                            \
    X(GIVEN_AT_ONCE, "a subscription is given although another worker has not let it go")          \
    X(LEAVING_FORGOTTEN, "what was leaving counts as gone before the worker has confirmed it")     \
    X(SYNC_ASSUMED, "a worker that is not in sync counts as one that is")                          \
    X(DELETED_LEAVES_AT_ONCE, "what no longer exists does not leave, but is gone")                 \
    X(OFFLINE_KEEPS, "an offline worker's list keeps what another worker gets")                    \
    X(OFFLINE_FORGETS, "an offline worker's list loses what no other worker has room for")         \
    X(PLACE_FREED, "what is leaving frees its place before it has another one")                    \
    X(HEADED_FORGOTTEN, "the second step of a move is planned anew")                               \
    X(CAMERAS_IGNORED, "subscriptions of one camera are placed one by one")                        \
    X(NEVER_DIVIDED, "a camera that no worker has room for is not divided")                        \
    X(WITHHELD_PLACED, "a paused subscription is given to a worker")                               \
    X(WANTED_IGNORED, "what a person moves stays where it is")                                     \
    X(WANTED_OVERFILLS, "what a person moves comes although there is no room")                     \
    X(BALANCED_UNSETTLED, "a worker gives by a load that its reports do not show yet")             \
    X(BALANCED_CHEAPLY, "a moved subscription counts as if it cost its place alone")               \
    X(REASON_LOST, "what waits for another worker has no reason")                                  \
    X(SECOND_UNPAIRED, "the seconds of a process are not spread")                                  \
    X(FIRST_RESHUFFLED, "the second of a worker becomes its first for no reason")                  \
    X(OWNER_IGNORED, "a process that has to give workers away gives those that it owns")

enum plan_mutant {
    PLAN_MUTANT_NONE,
#define PLAN_MUTANT_ENUM(name, text) PLAN_MUTANT_##name,
    PLAN_MUTANTS(PLAN_MUTANT_ENUM)
#undef PLAN_MUTANT_ENUM
        PLAN_MUTANT_COUNT
};

#ifdef BATON_MUTANTS
extern _Thread_local enum plan_mutant plan_mutant; /* in force; set by a test */
#define PLAN_MUTANT(name) (plan_mutant == PLAN_MUTANT_##name)
#else
#define PLAN_MUTANT(name) (false)
#endif

#endif
