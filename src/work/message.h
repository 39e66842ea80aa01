/* The messages between the leader of a pool and its workers, as JSON. Pure.
 *
 *   leader ── assign, stop, ask, ack ──▶ worker     on the worker's channel, or (ask) on all's
 *   leader ◀──── report, done ────────── worker     on the leader's channel
 *
 * Messages are lost, come late, twice and in any order, and nothing rests on their coming: a report
 * has all that a worker holds, and the leader compares it with the ledger.
 *
 *   {"type":"assign","leader":EPOCH,"number":COUNT,"session":…,"ledger":MARK,
 *    "items":[{"epoch":…,"attempt":…,"item":{…}}, …]}                     (item.h)
 *   {"type":"stop" or "ack", … as above …, "items":[{"id":"…","epoch":…}, …]}
 *   {"type":"ask","leader":…,"number":…,"session":…,"ledger":…}
 *   {"type":"report","worker":"…","session":…,"ledger":…,"seen":{"leader":…,"number":…},
 *    "slots":…,"cpu_permille":…,"gpus":…,"memory_mib":…,"labels":[…],"leaving":…,"reply":…,
 *    "claims":[{"id":"…","epoch":…,"ended":…,"gone":…,"progress_permille":…,"keys":[…],
 *               "item":{…}}, …]}
 *   {"type":"done","worker":"…","session":…,"result":{"id":"…","epoch":…,"success":…,"code":…,
 *    "began_unix_ms":…,"ended_unix_ms":…,"output":"…" or "output_base64":"…"}}
 *
 * Members that are false, 0 or empty may be left out, but for the numbers that name something.
 *
 * The leader numbers its messages: a worker takes no notice of one that is not above the highest
 * that it has seen of (epoch, number). So a message of an earlier leader, or a late one, changes
 * nothing. A report says which number was seen: an item that is missing in it was not there when
 * that message came, and no message before that can start it any more.
 */
#ifndef WORK_MESSAGE_H
#define WORK_MESSAGE_H

#include "base/buffer.h"
#include "work/item.h"

#include <baton/types.h>

enum {
    WORK_MESSAGE_MAX = 900 * 1024, /* bytes; a provider's messages have 1 MiB */
    WORK_OUTPUT_MAX = 16 * 1024,   /* bytes of a result's output, the tail of it */
    WORK_CLAIMS_MAX = 65536,       /* of one report, and items of one message */
    WORK_PERMILLE_MAX = 1000,
};

/* The largest epoch, session, count or mark of a ledger that a message or bucket can have. */
#define WORK_NUMBER_MAX ((uint64_t)INT64_MAX)

/* Which leader, and which of its messages. */
struct work_number {
    uint64_t epoch; /* of the leader */
    uint64_t count; /* of its messages, from 1 */
};

static inline bool work_number_before(struct work_number a, struct work_number b)
{
    return a.epoch != b.epoch ? a.epoch < b.epoch : a.count < b.count;
}

/* X(symbol, name on the wire) */
#define WORK_MESSAGES(X)                                                                           \
    X(WORK_ASSIGN, "assign")                                                                       \
    X(WORK_STOP, "stop")                                                                           \
    X(WORK_ASK, "ask")                                                                             \
    X(WORK_ACK, "ack")                                                                             \
    X(WORK_REPORT, "report")                                                                       \
    X(WORK_DONE, "done")

enum work_message_type {
#define WORK_MESSAGE_ENUM(symbol, name) symbol,
    WORK_MESSAGES(WORK_MESSAGE_ENUM)
#undef WORK_MESSAGE_ENUM
};

/* How an attempt ended. */
struct work_result {
    char *id;
    uint64_t epoch; /* of the attempt */
    bool is_success;
    int32_t code; /* of a program: its exit code, or 128 + signal */
    int64_t began_unix_ms, ended_unix_ms;
    uint8_t *output; /* of the item's program or function; opaque */
    size_t output_bytes;
};

/* What a worker says of one item that it holds. */
struct work_claim {
    char *id;
    uint64_t epoch;
    bool is_ended; /* its result waits for the leader's ack */
    bool is_gone;  /* its copy was ended without a result, and it starts no other */
    uint16_t progress_permille;
    char **keys;            /* that it maps now, ended by NULL; NULL: those of its item */
    struct work_item *item; /* a reference, in the reply to an ask; else NULL */
};

/* What a worker is and holds. */
struct work_report {
    char worker[BATON_NAME_MAX];
    uint64_t session; /* the epoch of its own election: it grows with each life */
    uint64_t ledger;  /* mark of the ledger that it knows; 0: none yet */
    struct work_number seen;
    uint32_t slots; /* that it has in all */
    uint32_t cpu_permille, gpus;
    uint64_t memory_mib;
    char labels[WORK_NEEDS_MAX];
    bool is_leaving; /* gets nothing new, and what it has is moved */
    bool is_reply;   /* to an ask of a leader without the ledger: claims have their items */
    struct work_claim *claims;
    size_t claim_count;
};

struct work_assignment {
    struct work_item *item; /* a reference */
    uint64_t epoch;
    uint32_t attempt; /* from 1 */
};

/* Owns what it points to; work_message_fini() frees that. */
struct work_message {
    enum work_message_type type;
    struct work_number number; /* of the leader's messages */
    uint64_t session;          /* ASSIGN, STOP, ACK: of the worker that is meant; DONE: its own */
    /* Of the leader's messages: the mark of its ledger. ASK: 0 if the ledger is lost, and the
     * reply is to have the items. */
    uint64_t ledger;
    char worker[BATON_NAME_MAX];         /* DONE */
    struct work_assignment *assignments; /* ASSIGN */
    struct work_claim *ids;              /* STOP, ACK: id and epoch of each */
    size_t count;
    struct work_report report; /* REPORT */
    struct work_result result; /* DONE */
};

/* Unknown members are ignored, as a later version may have more; all else is strict. BATON_EPROTO
 * with the path of what is wrong, BATON_ETOOBIG, BATON_ENOMEM; *ret is then as before. */
int work_message_read(struct work_message *ret, const void *data, size_t bytes,
                      struct baton_error *reterr);
void work_message_fini(struct work_message *message);
/* Appends it; buffer->failed: out of memory, longer than the buffer's maximum, or a number is above
 * WORK_NUMBER_MAX. */
void work_message_write(const struct work_message *message, struct buffer *buffer);

/* Of an output that is longer than WORK_OUTPUT_MAX the tail. BATON_ENOMEM: `to` is as before. */
int work_result_copy(struct work_result *to, const struct work_result *from);
void work_result_fini(struct work_result *result);
void work_claim_fini(struct work_claim *claim);
void work_report_fini(struct work_report *report);
/* BATON_ENOMEM: `to` is as before. */
int work_report_copy(struct work_report *to, const struct work_report *from);

/* The value of an item's result in the provider's state: JSON with the members of work_result, and
 * the worker and attempt. Both are strict as above. */
int work_result_read(struct work_result *ret, const void *data, size_t bytes,
                     struct baton_error *reterr);
void work_result_write(const struct work_result *result, const char *worker, uint32_t attempt,
                       struct buffer *buffer);

#endif
