/* For the files of the ledger only. Pure. */
#ifndef WORK_LEDGER_INT_H
#define WORK_LEDGER_INT_H

#include "work/ledger.h"

/* Of an entry's JSON without its id: each number and the worker's name at its longest. */
enum { LEDGER_ENTRY_BYTES = 232 };

struct ledger_place_key {
    uint64_t session;
    char worker[BATON_NAME_MAX]; /* zero to its end */
};

struct ledger_place {
    struct ledger_place_key key;
    struct ledger_entry *entries;
    size_t count;
    size_t awaited; /* within ledger_decode(): entries that are about to be here */
    UT_hash_handle hh;
};

/* A worker of which a session is known to have ended. */
struct ledger_ended {
    uint64_t session; /* the latest one */
    UT_hash_handle hh;
    char worker[];
};

struct ledger_bucket {
    struct ledger_entry *entries;
    size_t bytes;    /* of its JSON, at most */
    uint64_t writer; /* epoch of the leader that wrote it, as decoded last; 0: not known */
    uint64_t floor;  /* the highest epoch of an entry that was removed: its id may come again */
    uint64_t passed; /* the highest of a placing that was not stored, as far as is known */
    bool is_changed;
};

struct ledger {
    struct ledger_entry *entries; /* by id */
    struct ledger_entry *idle;
    struct ledger_entry *fresh; /* from here on the idle ones are not in their order yet; or NULL */
    struct ledger_place *places;
    struct ledger_ended *ended;      /* by the worker's name, the oldest first */
    struct ledger_mapping *mappings; /* by key */
    struct ledger_bucket buckets[LEDGER_BUCKETS];
    size_t counts[WORK_STATE_COUNT];
    uint64_t change;
    uint64_t writer;              /* epoch of the leader whose ledger this is; 0: not known */
    struct ledger_findings found; /* counters of claims */
};

/* ---- Entries and places (ledger.c) ----------------------------------------------------------- */

/* A new idle entry. BATON_EFULL, BATON_ENOMEM. */
int ledger_entry_add(struct ledger *ledger, const char *id, int64_t now_unix_ms,
                     struct ledger_entry **ret);
/* Takes it out of everything and frees it. */
void ledger_entry_drop(struct ledger *ledger, struct ledger_entry *entry);
/* The one place where an entry's state changes, whatever it was; `place`: of PROCESSING, else NULL.
 * Frees the place that it leaves, if that is empty. Marks nothing. */
void ledger_entry_set(struct ledger *ledger, struct ledger_entry *entry, enum work_state state,
                      struct ledger_place *place);
/* Clears what belongs to one placing: the leader's own fields, progress and claimed keys. */
void ledger_entry_clear(struct ledger *ledger, struct ledger_entry *entry);
/* Its attempt has this epoch. */
void ledger_entry_begin(struct ledger_entry *entry, uint64_t epoch);
/* What its bucket says of its first epoch; 0: nothing. */
uint64_t ledger_entry_first(const struct ledger_entry *entry);
/* Marks it, and its bucket, as changed. */
void ledger_entry_touch(struct ledger *ledger, struct ledger_entry *entry);
/* Its item, if it has none. BATON_ENOMEM. */
int ledger_entry_know(struct ledger *ledger, struct ledger_entry *entry, struct work_item *item);

/* Finds or adds it. NULL when out of memory. */
struct ledger_place *ledger_place_add(struct ledger *ledger, const char *worker, uint64_t session);
void ledger_place_drop_if_empty(struct ledger *ledger, struct ledger_place *place);

/* ---- Mapped keys (ledger_keys.c) ------------------------------------------------------------- */

/* In place of what is in *set; `keys` NULL: none. BATON_ENOMEM: that is as before. */
int ledger_keys_set(struct ledger *ledger, struct ledger_entry *entry, bool is_claimed,
                    struct ledger_keys **set, char *const *keys);
void ledger_keys_clear(struct ledger *ledger, struct ledger_keys **set);
size_t ledger_keys_lost(const struct ledger *ledger);

#endif
