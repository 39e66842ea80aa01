/* The ledger of a pool: which items there are, what became of each, and which worker has it. Pure.
 *
 *            ┌───────────── lost: its worker's session has ended ───────────┐
 *            ▼                                                              │
 *          idle ──place──▶ processing ──done──▶ completed · failed ────┐    │
 *            │                 │   └── failed, and retries are left ─▶ idle │
 *            └──────cancel─────┴──────────────▶ cancelled              │    │
 *                                                        ◀── (final) ──┘
 *
 * Entries are kept in buckets, by a hash of their ids: a bucket is one key of the provider's state,
 * written by compare-and-set as a whole. That is what keeps an item in one place, whichever leaders
 * there are: to place an item is to write its bucket at the revision that was read, before the
 * worker hears of it. Of two leaders, one fails, reads anew, and finds what the other did.
 * A bucket's key is never deleted: its revision would begin anew.
 *
 *   {"format":1,"leader":epoch,"floor":epoch,
 *    "items":[["id","processing","worker",session,epoch,attempt,failures,losses,code,
 *              since_unix_ms,began_unix_ms,first], …]}
 *
 * in one line, with the epoch of the leader that wrote it, the highest epoch of an entry that was
 * removed, and with worker "" and session 0 where an item is not processing. `first`, the epoch of
 * the item's first placing, is there only if it is another one than `epoch`, and an earlier item of
 * the id may have left a result: of a job whose id is not unique. A bucket is read as strictly as
 * it is written, without a blank or an escape, because a general reader takes longer than a
 * takeover may.
 *
 * Each placing gives an item a higher epoch, its fencing token: at least the leader's own, and
 * above the floor, so that an item of an id that was used before goes on above that one.
 */
#ifndef WORK_LEDGER_H
#define WORK_LEDGER_H

#include "work/item.h"
#include "work/message.h"

#include <uthash.h>

enum {
    LEDGER_FORMAT = 1,
    LEDGER_BUCKETS = 64,
    LEDGER_BUCKET_MAX = 120 * 1024, /* bytes of one, which every provider takes */
    LEDGER_ENTRIES_MAX = 200000,
    LEDGER_ENDED_MAX = 65536, /* workers of which an ended session is known: the latest ones */
};

/* X(symbol, name) */
#define WORK_STATES(X)                                                                             \
    X(WORK_IDLE, "idle")             /* waits for a place, or for its retry */                     \
    X(WORK_PROCESSING, "processing") /* a worker has it, or will hear of it */                     \
    X(WORK_COMPLETED, "completed")                                                                 \
    X(WORK_FAILED, "failed") /* for the last time */                                               \
    X(WORK_CANCELLED, "cancelled")

enum work_state {
#define WORK_STATE_ENUM(symbol, name) symbol,
    WORK_STATES(WORK_STATE_ENUM)
#undef WORK_STATE_ENUM
        WORK_STATE_COUNT
};

const char *work_state_name(enum work_state state); /* static storage */
static inline bool work_state_is_final(enum work_state state)
{
    return state >= WORK_COMPLETED;
}

/* Why a leader wants an item to stop where it is. */
enum work_wish { WORK_STAY, WORK_MOVE, WORK_CANCEL, WORK_TIME_OUT };

struct ledger_place; /* a worker's session; opaque */
struct ledger_keys;  /* what an item or a claim maps; opaque */

/* Read only for callers, but for the last group. Borrowed until it is removed. */
struct ledger_entry {
    enum work_state state;
    uint64_t epoch;   /* of the latest placing; 0: never placed */
    uint64_t first;   /* of the first one, above those of earlier items of its id; 0: not known */
    uint32_t attempt; /* number of placings */
    uint32_t failures;
    uint32_t losses;            /* placings that ended with their worker */
    int32_t code;               /* of the latest attempt that ended */
    int64_t since_unix_ms;      /* in this state, by the leader's wall clock; for people */
    int64_t began_unix_ms;      /* of the latest placing */
    struct ledger_place *place; /* PROCESSING: there; otherwise NULL */
    struct work_item *item;     /* NULL: its submission is not known (yet) */
    uint16_t progress_permille; /* not stored */
    bool is_listed;             /* within ledger_decode(): in the value */
    unsigned bucket;
    struct ledger_entry *prev, *next; /* of the same place, or of the idle ones, best first */
    struct ledger_entry *bucket_prev, *bucket_next;
    struct ledger_keys *item_keys, *claimed_keys; /* the latter count where there are both */
    UT_hash_handle hh;

    uint64_t change; /* ledger_change() when it changed last */

    /* The leader's own: not stored, and zero in a new entry. */
    enum work_wish wish;
    bool is_ours;            /* this leader has placed it */
    struct work_number told; /* its worker was told of the placing, or of the wish; 0: not yet */
    instant not_before;      /* of the next placing */
    instant deadline;        /* of the present attempt */
    uint64_t report;         /* number of the report that claimed it last */
    uint64_t ran;            /* epoch of a copy that was seen running: there was no later one */
    uint32_t purges;         /* without its item */
    uint8_t rest;            /* its keys that are to go before it does (leader_rest.c) */
    uint8_t reason;          /* enum placement_reason: why it has no place */
    char id[];               /* NUL-terminated */
};

struct ledger; /* one thread */

/* NULL when out of memory. */
struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger); /* NULL allowed */

struct ledger_entry *ledger_find(const struct ledger *ledger, const char *id);
/* In no particular order; prev NULL: the first. */
struct ledger_entry *ledger_next(const struct ledger *ledger, const struct ledger_entry *prev);
/* The idle ones, by priority, then in the order in which they became idle; NULL: none. */
struct ledger_entry *ledger_idle(const struct ledger *ledger);
size_t ledger_count(const struct ledger *ledger, enum work_state state);

/* An item that was submitted. *ret_entry: a new idle entry, or the one that was there; its item is
 * set if it had none. BATON_EEXIST: it has another item, which stays, and *ret_entry is set too.
 * BATON_EFULL: as many entries as the ledger or the item's bucket can have; BATON_ENOMEM. */
int ledger_submit(struct ledger *ledger, struct work_item *item, int64_t now_unix_ms,
                  struct ledger_entry **ret_entry);
/* The moves of the diagram; any other one is a broken invariant. Each marks the entry's bucket as
 * changed and clears the leader's own fields. `now_unix_ms`: the leader's wall clock.
 * place: BATON_ENOMEM; BATON_EFULL: there is no higher epoch. release: it stopped there, and waits
 * for another place; lose: its worker's session has ended; fail: the attempt failed. */
int ledger_place(struct ledger *ledger, struct ledger_entry *entry, const char *worker,
                 uint64_t session, uint64_t leader_epoch, int64_t now_unix_ms);
void ledger_release(struct ledger *ledger, struct ledger_entry *entry, int64_t now_unix_ms);
void ledger_lose(struct ledger *ledger, struct ledger_entry *entry, int64_t now_unix_ms);
void ledger_fail(struct ledger *ledger, struct ledger_entry *entry, int32_t code,
                 int64_t now_unix_ms); /* idle again (a service always), or failed for good */
void ledger_finish(struct ledger *ledger, struct ledger_entry *entry, enum work_state state,
                   int32_t code, int64_t now_unix_ms);
/* It is not known whether its placing is stored: the next one has a higher epoch. */
void ledger_pass_over(struct ledger *ledger, const struct ledger_entry *entry);
void ledger_remove(struct ledger *ledger, struct ledger_entry *entry); /* of a final one */

/* ---- Places ---------------------------------------------------------------------------------- */

/* The session in which a worker holds items; NULL: none. */
struct ledger_place *ledger_place_find(const struct ledger *ledger, const char *worker,
                                       uint64_t session);
/* All places that hold an entry; prev NULL: the first. A place is gone with its last entry. */
struct ledger_place *ledger_place_next(const struct ledger *ledger,
                                       const struct ledger_place *prev);
const char *ledger_place_worker(const struct ledger_place *place);
uint64_t ledger_place_session(const struct ledger_place *place);
struct ledger_entry *ledger_place_entries(const struct ledger_place *place);
size_t ledger_place_count(const struct ledger_place *place);

/* ---- Claims ---------------------------------------------------------------------------------- */

/* What a worker's claim is worth. X(symbol, name) */
#define LEDGER_VERDICTS(X)                                                                         \
    X(LEDGER_AGREES, "agrees")   /* as the ledger has it */                                        \
    X(LEDGER_ADOPTED, "adopted") /* the claim is newer, and the ledger was changed for it */       \
    X(LEDGER_STALE, "stale")     /* an earlier placing: that copy has to stop */                   \
    X(LEDGER_FINAL, "final")     /* the item has ended for good: likewise */                       \
    X(LEDGER_UNKNOWN, "unknown") /* there is no such item: likewise */

enum ledger_verdict {
#define LEDGER_VERDICT_ENUM(symbol, name) symbol,
    LEDGER_VERDICTS(LEDGER_VERDICT_ENUM)
#undef LEDGER_VERDICT_ENUM
};

/* Rules, each with its mutant:
 *   - of two claims the higher epoch wins; of equal ones the present place;
 *   - a claim above the ledger's epoch is adopted: the ledger is older than the worker;
 *   - a final state wins over a running claim, whatever its epoch;
 *   - an unknown item is adopted only while the ledger is `rebuilt` and the claim has its item;
 *   - a claim of a session that is known to have ended counts for nothing (LEDGER_STALE).
 * An adopted claim is as placed there with the claim's epoch. The progress and keys of a claim that
 * agrees or is adopted are the entry's, and so is its item where none was known.
 * BATON_EFULL, BATON_ENOMEM: nothing has changed.
 */
int ledger_claim(struct ledger *ledger, const char *worker, uint64_t session,
                 const struct work_claim *claim, bool is_rebuilt, int64_t now_unix_ms,
                 enum ledger_verdict *ret);
/* The session is proved to be over, and every earlier one of this worker: claims of it count for
 * nothing any more. The entries there are still in its places: ledger_lose() each. */
int ledger_end_sessions(struct ledger *ledger, const char *worker,
                        uint64_t session); /* BATON_ENOMEM */
/* Whether it is proved to be over. */
bool ledger_has_ended(const struct ledger *ledger, const char *worker, uint64_t session);

/* The item that maps the key, by the claim or item of the highest epoch; NULL: none does that has
 * not ended. */
const struct ledger_entry *ledger_locate(const struct ledger *ledger, const char *key);

/* ---- Validation ------------------------------------------------------------------------------ */

struct ledger_findings {
    size_t orphans;       /* processing at a session that has ended, or by an unknown worker */
    size_t without_item;  /* entries whose submission is gone, and that have not ended */
    size_t double_claims; /* since ledger_new(): claims that lost against that of another place */
    size_t stale_claims;  /* likewise: of earlier placings, or of sessions that have ended */
    size_t adopted;       /* likewise: claims that were newer than the ledger */
    size_t lost_mappings; /* keys of items that have ended, or mapped by two: one of them counts */
};
/* `is_known` says whether a worker's session is one that is known. */
void ledger_validate(const struct ledger *ledger,
                     bool (*is_known)(void *userdata, const char *worker, uint64_t session),
                     void *userdata, struct ledger_findings *ret);

/* ---- Buckets --------------------------------------------------------------------------------- */

unsigned ledger_bucket_of(const char *id); /* FNV-1a, so that it is the same for ever */
/* Grows with each change of an entry. */
uint64_t ledger_change(const struct ledger *ledger);
/* The next bucket that has changed since it was encoded or decoded, from `from` on; -1: none. */
int ledger_changed_bucket(const struct ledger *ledger, unsigned from);
/* The leader that writes the buckets from now on, by its epoch. A bucket's value has it, so that a
 * leader that others have followed sees that in the first value which it reads. */
void ledger_set_writer(struct ledger *ledger, uint64_t leader_epoch);
/* The leader that wrote the value which was decoded last; 0: not known. */
uint64_t ledger_writer(const struct ledger *ledger, unsigned bucket);
/* Marks one as changed. */
void ledger_touch(struct ledger *ledger, unsigned bucket);
/* Appends its JSON, and takes the mark away unless buffer->failed. */
void ledger_encode(struct ledger *ledger, unsigned bucket, struct buffer *buffer);
/* Replaces all entries of the bucket by those of the value, but keeps their items, and the leader's
 * own fields of those whose state, epoch and place are the same. data NULL: none. Takes the mark
 * away. BATON_ECORRUPT, BATON_ENOTSUP (a later format), BATON_EFULL, BATON_ENOMEM: the entries are
 * as before. */
int ledger_decode(struct ledger *ledger, unsigned bucket, const void *data, size_t bytes,
                  struct baton_error *reterr);
/* Whether both have the same entries, in all that is stored. */
bool ledger_equal(const struct ledger *a, const struct ledger *b);

#endif
