/* Planted bugs, to show that tests and the simulator find them. Only these compile them in
 * (BATON_MUTANTS); in the library WORK_MUTANT() is the constant false and leaves no code. Pure. */
#ifndef WORK_MUTANTS_H
#define WORK_MUTANTS_H

/* X(name, description): each is caught by 'baton-sim --work --mutants'. */
#define WORK_PLAYED_MUTANTS(X)                                                                     \
    X(EPOCH_KEPT, "a placing keeps the epoch of the one before")                                   \
    X(EPOCH_BELOW_LEADER, "a placing's epoch may be below that of its leader")                     \
    X(LOWER_CLAIM_WINS, "of two claims the one that is heard last wins, whatever its epoch")       \
    X(EQUAL_CLAIM_MOVES, "a claim of the same epoch takes the item from its present place")        \
    X(NEWER_CLAIM_STALE, "a claim above the ledger's epoch is not adopted")                        \
    X(FINAL_REVIVED, "a running claim of a higher epoch revives an item that has ended")           \
    X(EARLIER_SESSIONS_LIVE, "the end of a session leaves the worker's earlier ones alive")        \
    X(CHANGE_NOT_MARKED, "a placing does not mark its bucket as changed")                          \
    X(REMOVED_ENTRY_STAYS, "an entry that a bucket's value lacks stays")                           \
    X(TELLS_BEFORE_STORED, "a worker hears of a placing before that is stored")                    \
    X(WRITES_AT_ANY_REVISION, "a bucket is written whatever another leader has written")           \
    X(ACKS_BEFORE_STORED, "a worker may forget a result before the ledger has it")                 \
    X(ABSENT_WITHOUT_SEEN, "a report without an item counts, whichever messages it knows of")      \
    X(TAKES_OLD_RESULTS, "the result of an earlier placing ends the present one")                  \
    X(REBUILDS_IN_HASTE, "what a lost ledger may have had is placed at once")                      \
    X(SILENT_HAD_NOTHING, "a worker that does not reply is taken for one that got no items")       \
    X(KNOWN_COPY_IGNORED,                                                                          \
      "after a loss an item is sent to a worker although another one has reported a copy of it")   \
    X(FORGETS_TO_CANCEL, "a request to cancel does nothing")                                       \
    X(RUNS_WITHOUT_SESSION, "a worker runs on when its session is lost")                           \
    X(TAKES_OLD_MESSAGES, "a worker carries out a message that it has seen, or an older one")      \
    X(TWO_COPIES, "a further placing starts before the copy of the one before has ended")          \
    X(SENT_AGAIN, "an item that its worker lacks is sent to it again, by the same placing")        \
    X(FOREIGN_PLACING_SENT, "a leader sends the placings of another one")                          \
    X(LATER_LEADER_IGNORED, "a leader goes on when it reads or hears of a later one")              \
    X(SILENCE_IS_DEATH, "a worker that has not reported for a time counts as dead")                \
    X(FAILED_PUT_ACKED, "a result is acknowledged although the put of its end has failed")         \
    X(RESULT_WRITTEN_OVER, "a result is written over the one of an earlier attempt")               \
    X(EARLIER_RESULT_COUNTS,                                                                       \
      "the result of an earlier item of the id ends an item at its second attempt")                \
    X(RETRIES_FORGOTTEN, "a job fails for good at its first failure")                              \
    X(LOSS_IGNORED, "a leader goes on when what it has stored is not there any more")              \
    X(BUCKETS_NOT_MADE, "a ledger is complete before all its buckets are there")                   \
    X(STOP_SENT_ONCE, "what is to stop is not stopped again after the message was lost")           \
    X(REQUEST_DONE_EARLY, "a request to cancel is deleted before its item is known")               \
    X(ORPHANS_STAY, "an item whose submission is gone stays where it is")                          \
    X(FORGOTTEN_FIRST, "an entry is forgotten before its submission is deleted")                   \
    X(REST_DELETED_UNREAD, "what is left of a forgotten item is deleted, whichever item has it")   \
    X(FLOOR_FORGOTTEN, "an item of an id that was used before may have its epochs again")          \
    X(SHARED_FORGOTTEN, "an entry is forgotten although another submission has its item")          \
    X(ROOM_OF_THE_MOVING, "an item gets the room of one that is still to move")                    \
    X(MOVED_WITHOUT_BALANCE,                                                                       \
      "a service that was moved for balance is placed without regard to it")                       \
    X(RESULT_SENT_ONCE, "a result is not sent again until it is acknowledged")                     \
    X(ANY_SESSION, "a worker takes messages for its earlier sessions")

/* In a whole pool another rule makes good for them, or very many seeds are needed.
 * tests/unit/work/test_rules.c catches them, and the others of the ledger. */
#define WORK_RULE_MUTANTS(X)                                                                       \
    X(EARLY_LOSS_IGNORED,                                                                          \
      "what was read before the ledger was marked, and is gone, counts as deleted")                \
    X(OLD_VIEW_COUNTS, "a submission is deleted by what the ledger had before it came")            \
    X(UNKNOWN_ADOPTED, "an unknown item is adopted by a ledger that is complete")                  \
    X(ENDED_SESSION_CLAIMS, "a session that has ended can still claim")                            \
    X(DECODED_MARK_KEPT, "a bucket that was read anew counts as changed still")                    \
    X(TOLD_KEPT, "an entry that was placed anew by another leader counts as one that was told")    \
    X(ITEM_FORGOTTEN, "an entry that is read anew forgets its item")                               \
    X(FOREIGN_BUCKET_READ, "an entry is read from a bucket that its id does not belong to")

#define WORK_MUTANTS(X) WORK_PLAYED_MUTANTS(X) WORK_RULE_MUTANTS(X)

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
