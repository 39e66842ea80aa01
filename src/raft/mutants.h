/* Planted bugs, to show that the simulator finds them. Only sim/ compiles them in (BATON_MUTANTS);
 * in the library RAFT_MUTANT() is the constant false and leaves no code. */
#ifndef RAFT_MUTANTS_H
#define RAFT_MUTANTS_H

#include "base/invariant.h"

/* X(name, description) */
#define RAFT_MUTANTS(X)                                                                            \
    X(VOTE_NOT_STORED, "a vote leaves before it is on disk")                                       \
    X(OWN_VOTE_COUNTED_EARLY, "a candidate counts its own vote before it is on disk")              \
    X(TERM_NOT_STORED, "a vote's term is not written at all")                                      \
    X(ACK_BEFORE_STORE, "entries are acknowledged before they are on disk")                        \
    X(STORAGE_FAILURE_IGNORED, "a node whose write failed goes on voting")                         \
    X(PLEDGE_IGNORED, "a node votes below its pledged term, or in it for another node")            \
    X(PLEDGE_NOT_STORED, "a pledge stands for a stored vote before it is stored itself")           \
    X(PLEDGE_RUN_TWICE, "an heir campaigns in its pledged term again after a restart")             \
    X(VOTE_UNGATED, "a promise does not hold back real votes")                                     \
    X(STICKINESS_IGNORED, "a promise holds back neither votes nor pre-votes")                      \
    X(CANDIDACY_UNGATED, "a node campaigns although it is bound by a promise")                     \
    X(VOTE_PROMISES_NOTHING, "a voter does not keep the promise that its vote brings along")       \
    X(PROMISE_OF_EARLIER_LIFE, "a promise that a vote brings counts for a later life, too")        \
    X(LEADER_VOTES_UNDER_LEASE, "a leader votes for another under its own lease")                  \
    X(NO_SILENCE, "a voter votes right after a restart")                                           \
    X(CERTIFICATE_ANY_INCARNATION, "a certificate of another incarnation is accepted")             \
    X(RESIGNATION_ANY_TERM, "a resignation of an earlier term ends a later promise")               \
    X(EOF_IS_PROOF, "the end of a connection is taken as proof of death")                          \
    X(LEASE_FROM_RECEIPT, "the lease is counted from the reply")                                   \
    X(NO_DRIFT_FACTOR, "the lease is not shortened for clock drift")                               \
    X(NO_EXPIRY, "check-quorum without expiry: the lease never runs out by the clock")             \
    X(TRANSFER_BEFORE_VOID, "leadership is passed on before the own lease is voided")              \
    X(WEIGHTS_AS_HEADS, "voters are counted, not their weights")                                   \
    X(QUORUM_OF_HALF, "half of the weight is taken for a quorum")                                  \
    X(JOINT_NEW_HALF_ONLY, "a joint configuration asks only the incoming half")                    \
    X(JOINT_LEFT_EARLY, "a joint configuration is left before its new half covers the lease")      \
    X(LOG_NOT_COMPARED, "a vote does not compare logs")                                            \
    X(COMMIT_OF_OLD_TERM, "entries of earlier terms are committed by counting")                    \
    X(PREV_NOT_CHECKED, "an append does not check the entry before it")                            \
    X(STRANGERS_HEARD, "terms of nodes that are no members are adopted under a leader")            \
    X(FAREWELL_UNSAID, "removed members never get the configuration without them")                 \
    X(HEIR_ALONE_RUNS, "after a proof no node but the heir ever campaigns")                        \
    X(ROUNDS_NEVER_GROW, "rounds of votes that are too short never get longer")                    \
    X(SNAPSHOT_UNTRIED, "a snapshot is stored before its state was decoded")                       \
    X(CHANGE_UNCHECKED, "a change of members may leave no quorum that replies")                    \
    X(ANSWER_LOWERS_INFLIGHT,                                                                      \
      "any reply counts as the one to the last append, and a loss is not seen")                    \
    X(COUNTS_WHAT_IT_ASKED, "the leader counts the lease that it asked for, not the granted time") \
    X(SILENCE_OF_TODAY, "silence lasts as long as today's settings say, not as was promised")      \
    X(GRANT_NOT_LIMITED, "a voter grants more than its own heartbeat timeout")                     \
    X(PROMISED_ONCE, "the longest promise is stored once, and not when it grows")                  \
    X(CARETAKER_TAKES_LEASE, "a caretaker takes a lease")                                          \
    X(ENDLESS_NOT_CAPPED, "a lease without end is kept when other members get votes")              \
    X(WITNESS_LEADS, "a witness campaigns")                                                        \
    X(CORDON_IGNORED, "a cordoned node campaigns")                                                 \
    X(OUTLIVED_BY_NOTHING, "a later incarnation proves the end of a program that outlives it")     \
    X(PROOF_OF_LATER_LIFE,                                                                         \
      "a proof of a later incarnation ends a promise to one that is outlived")                     \
    X(OWN_LEASE_FORGOTTEN, "a leader that is outlived votes after a restart under its own lease")  \
    X(VOTE_OF_ANY_TERM, "a vote of an earlier term is counted")                                    \
    X(PLEDGE_WITHOUT_PROOF, "a pledge stands for a stored vote though the leader may live")        \
    X(PLEDGE_TAKEN_BACK, "a pledge is replaced by one to an earlier term")                         \
    X(STORED_KEPT_AT_TRUNCATION, "entries stored before a truncation count as stored after it")    \
    X(MEMBERS_KEPT_AT_TRUNCATION, "a truncation leaves the dropped configuration in force")        \
    X(COMMIT_UNCHECKED, "a follower commits entries that the append did not reach")                \
    X(COMMIT_TOLD_TO_ALL, "a heartbeat announces commits of entries that the follower may lack")   \
    X(READ_BEFORE_OWN_TERM, "a read is served before an entry of the own term is committed")       \
    X(SNAPSHOT_OF_LATEST_MEMBERS, "a snapshot has the latest members, not those of its index")     \
    X(SNAPSHOT_WITHOUT_MEMBERS, "the members of a snapshot do not come into force")

enum raft_mutant {
    RAFT_MUTANT_NONE,
#define RAFT_MUTANT_ENUM(name, text) RAFT_MUTANT_##name,
    RAFT_MUTANTS(RAFT_MUTANT_ENUM)
#undef RAFT_MUTANT_ENUM
        RAFT_MUTANT_COUNT
};

/* An invariant of the core, checked in release builds too. In the simulator a broken invariant is a
 * violation like any other, with its seed; elsewhere it ends the process before harm is done. */
#ifdef BATON_MUTANTS
extern _Thread_local enum raft_mutant raft_mutant; /* the bug in force; set by the simulator */
void raft_invariant_failed(const char *text, const char *file, int line) __attribute__((noreturn));
#define RAFT_MUTANT(name) (raft_mutant == RAFT_MUTANT_##name)
#define RAFT_INVARIANT(condition)                                                                  \
    ((condition) ? (void)0 : raft_invariant_failed(#condition, __FILE__, __LINE__))
#else
#define RAFT_MUTANT(name) (false)
#define RAFT_INVARIANT(condition)                                                                  \
    ((condition) ? (void)0 : invariant_failed(#condition, __FILE__, __LINE__))
#endif

#endif
