/* Planted bugs, to show that the simulator finds them. Only sim/ compiles them in (BATON_MUTANTS);
 * in the library SESSION_MUTANT() is the constant false and leaves no code. */
#ifndef SESSIONS_MUTANTS_H
#define SESSIONS_MUTANTS_H

/* X(name, description) */
#define SESSION_MUTANTS(X)                                                                         \
    X(EPOCH_KEPT, "a grant keeps the epoch of the one before")                                     \
    X(RESIGN_ANY_EPOCH, "a late or repeated RESIGN takes a later grant away")                      \
    X(WITHDRAW_ANY_EPOCH, "a late or repeated WITHDRAW takes a later grant away")                  \
    X(PASS_TAKES, "a request to pass takes the election from a holder that still acts")            \
    X(CORDON_TAKES, "a cordon takes the election from a holder that still acts")                   \
    X(PRIORITY_TAKES, "a contender of higher priority takes the election as it enters")            \
    X(OBSERVER_HOLDS, "an election is granted to a contender that may not lead")                   \
    X(END_GRANTS_NOTHING, "what an ended session held is granted to no session")                   \
    X(PRIORITY_NOT_RESTORED, "a snapshot forgets the priorities")                                  \
    X(CORDON_NOT_RESTORED, "a snapshot forgets who may not lead")                                  \
    X(OLD_LIFETIMES_COUNT, "a new leader goes on with the lifetimes that it measured before")      \
    X(RENEWS_THE_ENDING, "a session is renewed although its end was ordered")                      \
    X(RENEWS_THE_ENDED, "a session that has ended is renewed")                                     \
    X(END_NOT_REPEATED, "the end of a session is ordered once only")                               \
    X(REFUSAL_ENDS_ALL, "when the log refuses an END, sessions that live are overdue, too")        \
    X(OPENED_NOT_KEPT, "a session that was opened under this leader never ends")                   \
    X(ENDS_TOO_EARLY, "a session ends after nine tenths of its lifetime")                          \
    X(PROOF_OF_ANY_LIFE, "a proof of death ends the session of a later incarnation")               \
    X(PROOF_OF_ANY_PROCESS, "a node's proof of death ends the sessions of its other processes")    \
    X(FENCE_OF_ANY_ATTACHMENT, "a fence ends the sessions that attached after it began")           \
    X(FENCE_OF_ANY_HOST, "a fence ends the sessions of other hosts")                               \
    X(FENCE_OF_OWN_PROCESS, "a fence ends only the sessions of the nodes' own processes")          \
    X(RESIGNS_BEFORE_VOID, "a process resigns while it still acts")                                \
    X(WITHDRAWS_BEFORE_VOID, "a process leaves an election while it still acts in it")             \
    X(GIVEN_UP_TAKEN_AGAIN, "a grant that was given up is taken again when it is reported late")   \
    X(GIVEN_UP_FORGOTTEN, "an election that is entered anew does not know what was given up")      \
    X(OLD_SESSION_HOLDS, "what an earlier session of the process held counts for the present one") \
    X(HOLDS_WITHOUT_SESSION, "a process acts on after its session's lease has ended")              \
    X(NOT_ENTERED_AGAIN, "a new session does not enter the elections of the one before")           \
    X(WAITS_FOR_A_LOST_REPLY, "an order without a reply is not repeated")                          \
    X(LOST_ENTRY_FORGOTTEN, "an ENTER without a reply counts as carried out")                      \
    X(LATE_WITHDRAWAL_NOT_HEARD, "a process that a late WITHDRAW took out of a line stays out")    \
    X(LATE_ENTRY_KEPT, "a process that a late ENTER put into a line stays there")                  \
    X(RESUMES_WITHOUT_SECRET, "a session is resumed by a process that does not know its secret")   \
    X(END_OF_ANY_ATTACHMENT, "an END that was ordered before a resumption ends the session")       \
    X(RESUMED_NOT_KEPT, "the lifetime of a resumed session goes on from its last renewal")         \
    X(LATE_RESUMPTION_ENDS, "a session is ended when the reply to its resumption comes too late")  \
    X(RESUMES_WITH_ITS_OWN_LIFETIME, "a resumed session's lease has the lifetime of a new one")    \
    X(RECALLS_NOTHING, "a resumed session takes an epoch again that its process has given up")     \
    X(KEPT_BEYOND_SESSION, "what a resumed session held is claimed when it has been lost")         \
    X(UNCLAIMED_GIVEN_UP, "what a resumed session holds is given up before its process claims it") \
    X(REPORT_NOT_TAKEN, "a resumed session does not take up what it held before it is claimed")

enum session_mutant {
    SESSION_MUTANT_NONE,
#define SESSION_MUTANT_ENUM(name, text) SESSION_MUTANT_##name,
    SESSION_MUTANTS(SESSION_MUTANT_ENUM)
#undef SESSION_MUTANT_ENUM
        SESSION_MUTANT_COUNT
};

#ifdef BATON_MUTANTS
extern _Thread_local enum session_mutant session_mutant; /* in force; set by the simulator */
#define SESSION_MUTANT(name) (session_mutant == SESSION_MUTANT_##name)
#else
#define SESSION_MUTANT(name) (false)
#endif

#endif
