/* The leader's state, which the files leader*.c work on; not for others. Pure. From below:
 *
 *   leader_known.c   the workers, and the ends of their sessions
 *   leader_store.c   keys: what is read, what is to be written
 *   leader_clients.c submissions and requests to cancel, until they are over
 *   leader_rest.c    keys of items that are to be forgotten
 *   leader_hear.c    reports and results
 *   leader_place.c   which idle item goes where, which service moves
 *   leader_send.c    messages for workers
 *   leader.c         beginning, time, outputs
 */
#ifndef WORK_LEADER_INT_H
#define WORK_LEADER_INT_H

#include "work/leader.h"
#include "work/mutants.h"

enum { LEADER_KEY_MAX = WORK_ID_MAX + 8, LEADER_PURGE_S = 10 /* between purges */ };

/* An item of a worker that is to be stopped, or a result that it may forget. */
struct leader_note {
    struct leader_note *next;
    uint64_t epoch;
    char id[];
};

/* A worker, heard or only known by what the ledger says it has. */
struct leader_known {
    uint64_t session; /* the latest that is known; 0: only told to drain */
    struct work_number seen;
    struct work_number told; /* the latest message for it */
    instant told_at;
    instant heard;
    uint32_t slots, gpus, cpu_permille;
    uint64_t memory_mib;
    char labels[WORK_NEEDS_MAX];
    bool is_heard;   /* it has reported in this session, to this leader */
    bool is_awaited; /* nothing is placed before it has reported, or for a time */
    bool is_over;    /* its session is over */
    bool is_silent;
    bool is_leaving, is_draining;
    bool is_entered; /* we contend for its election */
    bool is_ours;    /* and hold it */
    bool is_due;     /* perhaps there is something to send */
    bool is_waiting; /* there is, once it is stored */
    struct leader_note *stops, *acks;
    UT_hash_handle hh;
    char name[BATON_NAME_MAX];
};

struct leader_bucket {
    uint64_t revision;             /* 0: its key is not there */
    uint64_t storing;              /* ledger_change() when it was encoded */
    uint64_t stored;               /* the same of what is stored */
    uint64_t storing_heard, heard; /* work_leader.heard when each of these was encoded */
    bool is_storing;
    bool is_written; /* by this leader, so that no earlier one can write it any more */
    bool is_reading; /* what it has is not known: another leader wrote it, or it is damaged */
};

struct leader_submission {
    uint64_t revision;
    uint64_t heard; /* work_leader.heard when it came */
    struct work_item **items;
    size_t count;
    unsigned reads;   /* under way, of whether it is there */
    bool is_early;    /* read before the mark was stored, so perhaps it was lost before that */
    bool is_watched;  /* a watch has reported it: the watch reports its deletion, too */
    bool is_doubted;  /* perhaps another leader has brought it to its end and deleted it */
    bool is_gone;     /* deleted by somebody else: what has not ended is cancelled */
    bool is_deleting; /* by us */
    unsigned purges;  /* since it was deleted, and its items are forgotten; 0: it is there */
    UT_hash_handle hh;
    char name[WORK_ID_MAX];
};

/* A request to cancel. */
struct leader_request {
    uint64_t revision;
    uint64_t deleted; /* is_deleting: that revision; a later one is another request */
    uint64_t heard;   /* work_leader.heard when it came */
    unsigned purges;  /* since it came */
    bool is_deleting;
    UT_hash_handle hh;
    char id[WORK_ID_MAX];
};

enum leader_result_state {
    RESULT_WAITS,   /* to be written */
    RESULT_WRITING, /* its put is under way */
    RESULT_READING, /* there is one already, which counts; or */
    RESULT_CLEARS,  /* is that of an earlier item of its id, and is being deleted */
    RESULT_WRITTEN, /* the ledger says so; it is acknowledged when that is stored */
};

/* A result that came, until it is acknowledged. */
struct leader_result {
    enum leader_result_state state;
    struct work_result result;
    uint64_t epoch; /* of the attempt that ended */
    uint64_t session;
    char worker[BATON_NAME_MAX];
    UT_hash_handle hh;
    char id[WORK_ID_MAX];
};

/* A report that came before all was loaded. */
struct leader_early {
    struct leader_early *next;
    struct work_report report;
};

/* An output that waits. */
struct leader_queued {
    struct leader_queued *prev, *next;
    enum work_output_type type;
    uint64_t revision;
    char text[LEADER_KEY_MAX]; /* key or worker */
};

/* Classes of processing times: to 1 ms, and each of the others to so many times the last. */
#define LEADER_TIMES_GROW 1.33
enum { LEADER_TIMES = 64 };

struct work_leader {
    struct work_leader_options options;
    struct ledger *ledger;
    struct work_counters counters;
    uint64_t messages;
    uint64_t asked;        /* number of the latest ask, to all; 0: none */
    uint64_t asked_ledger; /* and the ledger in it */
    uint64_t reports;
    instant began;

    uint64_t mark;   /* of the ledger that the state has, or that is being rebuilt; 0: none yet */
    uint64_t chosen; /* for a new one */
    bool is_loaded;  /* the list is complete */
    bool is_ready;   /* items are placed: workers that were heard of have reported, or it is time */
    bool is_rebuilt; /* there was no ledger */
    bool was_lost;   /* a worker knows, or may know, of a ledger that this leader did not find */
    bool is_complete; /* all buckets of the ledger are there, and its key says so */
    bool is_marking;  /* a put of the key "ledger" is under way */
    bool is_over; /* a later leader writes the ledger, it was lost, or there was no memory for what
                     nothing would bring up again: this one does nothing more, and resigns */
    bool is_lost; /* the ledger was lost, and this leader is over because of that */
    bool has_resigned;
    bool is_checking;         /* whether the ledger is still there */
    uint64_t ledger_revision; /* of the key "ledger"; 0: it is not there */
    uint64_t made;            /* is_rebuilt: ledger_change() when items were first placed */
    instant gather_until;
    bool is_settled; /* what could be placed at once is stored, or it is time for the rest, too */
    instant settle_by;

    struct leader_known *known;
    struct leader_bucket buckets[LEDGER_BUCKETS];
    uint64_t heard; /* how many submissions and requests have come */
    struct leader_submission *submissions;
    struct leader_request *requests;
    struct leader_result *results;
    struct leader_queued *queue;
    struct leader_early *early; /* the latest first */
    size_t early_claims;

    bool is_place_due, is_balance_due;
    instant place_at; /* an idle item's time comes */
    instant next_tick, next_balance, next_purge;
    bool is_ask_due;
    bool is_ask_wanted; /* at the next tick */
    bool is_crowded;    /* an item had no room in the ledger */
    size_t rests;       /* keys of items to be forgotten that are being read or deleted */
    bool is_cancel_due; /* perhaps a request can be carried out, or is done */

    struct buffer out; /* what the latest output borrows */
    struct leader_queued *given;
    char key[LEADER_KEY_MAX];

    uint64_t times[LEADER_TIMES]; /* of completed attempts, by class of their milliseconds */
    uint64_t times_count;
    double times_sum_ms;
};

/* ---- leader_known.c -------------------------------------------------------------------------- */

/* NULL when out of memory. */
struct leader_known *leader_know(struct work_leader *leader, const char *worker);
struct leader_known *leader_known(const struct work_leader *leader, const char *worker);
void leader_forget(struct work_leader *leader, struct leader_known *known);
/* `known` may have been for that alone, and end here. */
void leader_drain(struct work_leader *leader, struct leader_known *known, bool is_drained);
void leader_enter(struct work_leader *leader, struct leader_known *known);
/* The worker has a later session than was known. */
void leader_know_session(struct leader_known *known, uint64_t session);
/* The worker's sessions up to this one are over: what they had is lost. */
void leader_sessions_end(struct work_leader *leader, struct leader_known *known, uint64_t session,
                         int64_t now_unix_ms);
/* Loses what the ledger has at sessions that are over. */
void leader_lose_ended(struct work_leader *leader, int64_t now_unix_ms);
/* Contends for the elections of all workers that have items. */
void leader_know_places(struct work_leader *leader);
/* It may be sent something. */
bool leader_is_reachable(const struct leader_known *known);
void leader_note(struct leader_note **list, const char *id, uint64_t epoch);
void leader_notes_free(struct leader_note **list);

/* ---- leader_store.c -------------------------------------------------------------------------- */

/* What the entry says is stored. */
bool leader_is_stored(const struct work_leader *leader, const struct ledger_entry *entry);
/* It was still so when a submission or request had come, by its `heard`. False may also mean that
 * this is not certain: then the bucket is written, which fails if somebody else has written it, or
 * this leader late, when it had read it again. */
bool leader_is_still_stored(struct work_leader *leader, const struct ledger_entry *entry,
                            uint64_t heard);
/* There is no such item. False may also mean that this is not certain: then the bucket is written,
 * which fails if an earlier leader has written it since it was read. */
bool leader_is_unknown(struct work_leader *leader, const char *id);
/* The next put or read, into leader->out and leader->key. */
bool leader_next_put(struct work_leader *leader, instant now, struct work_output *ret);
bool leader_is_all_stored(const struct work_leader *leader);
/* Writes those that are not there, before the ledger is complete: so a bucket that is absent later
 * was lost. */
void leader_make_buckets(struct work_leader *leader);
bool leader_has_all_buckets(const struct work_leader *leader);
/* The mark of a ledger that is complete; 0: there is none. */
uint64_t leader_complete_ledger(const struct work_leader *leader);
/* It is rebuilt, under another mark. */
void leader_lose_ledger(struct work_leader *leader);
/* The state has lost the ledger: the leader is over. */
void leader_end_as_lost(struct work_leader *leader);
/* Out of memory, the leader is over. */
void leader_queue(struct work_leader *leader, enum work_output_type type, const char *text,
                  uint64_t revision);
/* Reads whether the ledger is still there; then take_ledger() decides. */
void leader_check_ledger(struct work_leader *leader);
void leader_store_free(struct work_leader *leader);

/* ---- leader_clients.c ------------------------------------------------------------------------ */

/* Values of "s/NAME" and "c/ID"; NULL, false: it is not there. */
void leader_take_submission(struct work_leader *leader, const char *name, bool is_read,
                            const void *data, size_t bytes, uint64_t revision, int64_t now_unix_ms);
void leader_take_request(struct work_leader *leader, const char *id, bool is_there,
                         uint64_t revision);
/* Submits again what a bucket that was read does not have yet. */
void leader_submit_all(struct work_leader *leader, int64_t now_unix_ms);
/* Cancels what the list had no submission of: somebody deleted that. */
void leader_cancel_orphans(struct work_leader *leader);
/* Carries out requests to cancel, and submissions that are gone. */
void leader_cancel_due(struct work_leader *leader, int64_t now_unix_ms);
/* Removes what has ended long ago. */
void leader_purge(struct work_leader *leader, int64_t now_unix_ms);
/* Another leader has written the bucket: submissions of which it lacks an item are read again. */
void leader_doubt_submissions(struct work_leader *leader, unsigned bucket);
/* The ledger has no mark: all submissions that were read may be gone, and are early. If one is gone
 * already, the leader is over. */
void leader_set_early(struct work_leader *leader);
/* The mark is stored: reads the early ones again. */
void leader_read_early(struct work_leader *leader);
/* Whether some have not been read again. */
bool leader_has_early(const struct work_leader *leader);
/* The reply to a deletion of "s/NAME" or "c/ID". */
void leader_deletion_stored(struct work_leader *leader, const char *key, int code);
void leader_clients_free(struct work_leader *leader);

/* ---- leader_rest.c --------------------------------------------------------------------------- */

/* Of an item that has ended, once its keys are deleted. */
void leader_remove_entry(struct work_leader *leader, struct ledger_entry *entry);
/* The value of "r/ID" or "k/ID"; NULL: it is not there. */
void leader_take_rest(struct work_leader *leader, const char *key, const void *data, size_t bytes,
                      uint64_t revision, int64_t now_unix_ms);
/* The reply to its deletion. */
void leader_rest_deleted(struct work_leader *leader, const char *key, int code,
                         int64_t now_unix_ms);

/* ---- leader_hear.c --------------------------------------------------------------------------- */

/* The item has this result now in the state. */
void leader_result_stored(struct work_leader *leader, struct leader_result *result, instant now,
                          int64_t now_unix_ms);
/* Acknowledges the results of which the ledger is stored. */
void leader_acknowledge(struct work_leader *leader);
void leader_result_free(struct work_leader *leader, struct leader_result *result);
/* Takes what was reported before all was loaded. */
void leader_hear_early(struct work_leader *leader, instant now, int64_t now_unix_ms);
void leader_early_free(struct work_leader *leader);
/* The wait before an item's next attempt. */
span leader_backoff(const struct ledger_entry *entry);

/* ---- leader_place.c, leader_send.c ----------------------------------------------------------- */

void leader_place(struct work_leader *leader, instant now, int64_t now_unix_ms);
/* Wants the item to stop where it is. */
void leader_wish(struct work_leader *leader, struct ledger_entry *entry, enum work_wish wish);
bool leader_next_message(struct work_leader *leader, instant now, struct work_output *ret);

#endif
