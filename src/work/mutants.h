/* Planted bugs, to show that tests and the simulator find them. Only these compile them in
 * (BATON_MUTANTS); in the library WORK_MUTANT() is the constant false and leaves no code. Pure. */
#ifndef WORK_MUTANTS_H
#define WORK_MUTANTS_H

/* X(name, description) */
#define WORK_MUTANTS(X)                                                                            \
    X(EPOCH_KEPT, "a placing keeps the epoch of the one before")                                   \
    X(EPOCH_BELOW_LEADER, "a placing's epoch may be below that of its leader")                     \
    X(LOWER_CLAIM_WINS, "of two claims the one that is heard last wins, whatever its epoch")       \
    X(EQUAL_CLAIM_MOVES, "a claim of the same epoch takes the item from its present place")        \
    X(NEWER_CLAIM_STALE, "a claim above the ledger's epoch is not adopted")                        \
    X(FINAL_REVIVED, "a running claim of a higher epoch revives an item that has ended")           \
    X(UNKNOWN_ADOPTED, "an unknown item is adopted by a ledger that is complete")                  \
    X(ENDED_SESSION_CLAIMS, "a session that has ended can still claim")                            \
    X(EARLIER_SESSIONS_LIVE, "the end of a session leaves the worker's earlier ones alive")        \
    X(CHANGE_NOT_MARKED, "a placing does not mark its bucket as changed")                          \
    X(DECODED_MARK_KEPT, "a bucket that was read anew counts as changed still")                    \
    X(REMOVED_ENTRY_STAYS, "an entry that a bucket's value lacks stays")                           \
    X(TOLD_KEPT, "an entry that was placed anew by another leader counts as one that was told")    \
    X(ITEM_FORGOTTEN, "an entry that is read anew forgets its item")                               \
    X(FOREIGN_BUCKET_READ, "an entry is read from a bucket that its id does not belong to")        \
    X(TELLS_BEFORE_STORED, "a worker hears of a placing before that is stored")                    \
    X(WRITES_AT_ANY_REVISION, "a bucket is written whatever another leader has written")           \
    X(ACKS_BEFORE_STORED, "a worker may forget a result before the ledger has it")                 \
    X(ABSENT_WITHOUT_SEEN, "a report without an item counts, whichever messages it knows of")      \
    X(TAKES_OLD_RESULTS, "the result of an earlier placing ends the present one")                  \
    X(REBUILDS_IN_HASTE, "what a lost ledger may have had is placed at once")                      \
    X(FORGETS_TO_CANCEL, "a request to cancel does nothing")                                       \
    X(RUNS_WITHOUT_SESSION, "a worker runs on when its session is lost")                           \
    X(TAKES_OLD_MESSAGES, "a worker carries out a message that it has seen, or an older one")      \
    X(TWO_COPIES, "a further placing starts before the copy of the one before has ended")

enum work_mutant {
    WORK_MUTANT_NONE,
#define WORK_MUTANT_ENUM(name, text) WORK_MUTANT_##name,
    WORK_MUTANTS(WORK_MUTANT_ENUM)
#undef WORK_MUTANT_ENUM
        WORK_MUTANT_COUNT
};

#ifdef BATON_MUTANTS
extern _Thread_local enum work_mutant work_mutant; /* in force; set by a test or the simulator */
#define WORK_MUTANT(name) (work_mutant == WORK_MUTANT_##name)
#else
#define WORK_MUTANT(name) (false)
#endif

#endif
