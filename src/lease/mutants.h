/* Planted bugs, to show that the simulator finds them. Only sim/ compiles them in (BATON_MUTANTS);
 * in the library LEASE_MUTANT() is the constant false and leaves no code. */
#ifndef LEASE_MUTANTS_H
#define LEASE_MUTANTS_H

/* X(name, description) */
#define LEASE_MUTANTS(X)                                                                           \
    X(COUNTED_FROM_ANSWER, "the lease is counted from the reply")                                  \
    X(NO_DRIFT_FACTOR, "the lease is not shortened for clock drift")                               \
    X(NO_END, "an error extends the lease")                                                        \
    X(ANY_ANSWER_COUNTS, "a reply to an earlier request counts for the present one")               \
    X(RELEASE_BEFORE_VOID, "the lock is released while the lease is still published")              \
    X(ERROR_DEMOTES, "one failed renewal ends a leadership")                                       \
    X(RELEASED_IS_TAKEN_AGAIN, "an epoch that was given back is taken again")                      \
    X(LATE_GRANT_IS_TAKEN, "a grant that arrives after its own end is taken")                      \
    X(UNWANTED_GRANT_IS_TAKEN, "a grant to a process that may not lead is taken")                  \
    X(END_NOT_LEARNT, "a follower asks at each check interval, not when the lock ends")            \
    X(RELEASE_NOT_HEARD, "a release does not wake a follower")                                     \
    X(CROSSED_RELEASE_FORGOTTEN, "a release that crosses a reply is not remembered")               \
    X(ENDLESS_IS_OVER,                                                                             \
      "a lock without a lifetime is asked for as if it ended now, again and again")                \
    X(WAITS_FOR_EVER, "a process waits for a lost reply for ever")                                 \
    X(SEEN_EPOCH_FORGOTTEN, "the epoch of another holder is not remembered")                       \
    X(LATE_GRANT_KEPT, "the lock that an abandoned request got is not given back")                 \
    X(LEAVES_A_LOCK_BEHIND, "a process that leaves while it asks releases nothing")                \
    X(TAKEN_NOT_HEARD, "a notice that another process leads is ignored")                           \
    X(RESIGNED_ASKS_AT_ONCE, "a process that resigns asks for the lock again at once")             \
    X(LEFT_AND_ASKS, "a process that has left goes on asking")                                     \
    X(CORDONED_TAKES, "a process that may not lead asks for the lock")

enum lease_mutant {
    LEASE_MUTANT_NONE,
#define LEASE_MUTANT_ENUM(name, text) LEASE_MUTANT_##name,
    LEASE_MUTANTS(LEASE_MUTANT_ENUM)
#undef LEASE_MUTANT_ENUM
        LEASE_MUTANT_COUNT
};

#ifdef BATON_MUTANTS
extern _Thread_local enum lease_mutant lease_mutant; /* the bug in force; set by the simulator */
#define LEASE_MUTANT(name) (lease_mutant == LEASE_MUTANT_##name)
#else
#define LEASE_MUTANT(name) (false)
#endif

#endif
