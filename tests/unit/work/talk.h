/* The leader of a pool, as a conversation. What came of each step is one line: the keys that are
 * put or read, elections, messages. An item is written "id/epoch". Unless a test withholds them,
 * puts are stored at once, and what follows from that is in the same line. */
#ifndef TESTS_UNIT_WORK_TALK_H
#define TESTS_UNIT_WORK_TALK_H

#include "cmocka_all.h"
#include "work/leader.h"

enum { EPOCH = 100, REPORT_MS = 1000, LEASE_MS = 30000, KEEP_S = 60, KEYS_MAX = 2048 };

struct key {
    char name[WORK_ID_MAX + 8];
    uint64_t revision;
    char *data;
    size_t bytes;
};

struct talk {
    struct work_leader *leader;
    uint64_t epoch; /* of the leader */
    int64_t ms;
    uint64_t revision;
    int code;       /* of each put */
    bool withholds; /* the reply to each put */
    uint64_t at;    /* revision of the latest put */
    size_t made;    /* buckets without an item that were put: they are not in the line */
    uint64_t told;  /* the number of its latest message */
    uint64_t knows; /* mark of the ledger in each report; 0: none */
    bool replies;   /* each report is a reply to an ask */
    struct key keys[KEYS_MAX];
    size_t key_count;
    char line[4096];
};

instant talk_now(const struct talk *talk);

/* ---- The state ------------------------------------------------------------------------------- */

struct key *talk_key_of(struct talk *talk, const char *name);
void talk_write_key(struct talk *talk, const char *name, const void *data, size_t bytes);
/* "b/NN", of the item. */
void talk_bucket_key(char ret[8], const char *id);
/* The leader hears what the key has. */
void talk_tell_key(struct talk *talk, const char *name);
/* The same, as the reply to a read. */
void talk_tell_read(struct talk *talk, const char *name);
/* The keys of an item that is forgotten: each in reply to a read. Returns what comes out. */
const char *talk_tell_rest(struct talk *talk, const char *id);
/* The reply to a put of the key. */
void talk_reply(struct talk *talk, const char *key, int code);
/* All outputs that the leader has by now. */
const char *talk_all_of(struct talk *talk);

/* ---- What goes in: each returns what comes out ----------------------------------------------- */

/* "s/x" with these items: JSON without the outer braces. */
const char *talk_submit(struct talk *talk, const char *name, const char *items);
/* Claims are "a/5 b/6"; "a/5!" has ended, "a/5-" is gone. `seen`: a number of our messages; 0:
 * none. */
const char *talk_report(struct talk *talk, const char *worker, uint64_t session, uint64_t seen,
                        const char *claims);
const char *talk_done(struct talk *talk, const char *worker, uint64_t session, const char *id,
                      uint64_t epoch, bool is_success);
const char *talk_granted(struct talk *talk, const char *worker, uint64_t epoch, bool is_ours);
const char *talk_later(struct talk *talk, int64_t ms);

/* ---- What it knows --------------------------------------------------------------------------- */

enum work_state talk_state_of(const struct talk *talk, const char *id);
const struct work_counters *talk_counters(const struct talk *talk);

/* ---- Beginnings ------------------------------------------------------------------------------ */

/* Another leader, which knows nothing yet; then all that is stored. */
void talk_lead(struct talk *talk, uint64_t epoch);
void talk_load(struct talk *talk);
/* A leader of a pool whose ledger exists and is empty: setup and teardown of a test. */
int talk_begin(void **state);
int talk_end(void **state);
/* w1 has reported, and has the item "a" in this epoch. */
void talk_run_a(struct talk *talk);

#endif
