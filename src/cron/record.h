/* What the group knows of one line: the value of the key cron/ELECTION/LINE, as JSON. Pure.
 *
 *   {"schedule":"30 2 * * 1-5","zone":"Europe/Berlin","command":"/usr/local/bin/report",
 *    "since":1764000000,"fire":1764120600,"state":"running","next":1764207000,
 *    "running":[{"fire":1764120600,"attempt":1,"node":"a","epoch":7,"start_ms":1764120600003}],
 *    "last":{"fire":1764034200,"state":"done","exit_code":0,"node":"b","epoch":6,"attempt":1,
 *            "start_ms":1764034200002,"end_ms":1764034260002,"output":"…"},
 *    "runs":31,"failures":0,"interrupted":0,"skipped":0,"missed":1}
 *
 * "fire" is the latest instant that is decided: none that is earlier fires any more. "running" has
 * the fires that were claimed and have no end; "last" is the run that ended last. Each fire counts
 * once in the end: as a run (of which some are failures), or as interrupted, skipped or missed.
 * Seconds and milliseconds since 1970; a schedule's instants are its name, whatever clock started
 * the command.
 */
#ifndef CRON_RECORD_H
#define CRON_RECORD_H

#include "base/error.h"

#include <baton/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CRON_RUNNING_MAX = 16,   /* at once, of one line */
    CRON_OUTPUT_MAX = 4096,  /* bytes of the end of what the command wrote */
    CRON_RECORD_MAX = 65536, /* bytes of the JSON */
};

/* X(name, text) */
#define CRON_STATES(X)                                                                             \
    X(NEVER, "never") /* has not fired yet */                                                      \
    X(RUNNING, "running")                                                                          \
    X(DONE, "done")               /* its command ended with 0 */                                   \
    X(FAILED, "failed")           /* with another code */                                          \
    X(INTERRUPTED, "interrupted") /* it was killed since leadership ended */                       \
    X(SKIPPED, "skipped")         /* the command of an earlier fire was still running */           \
    X(MISSED, "missed")           /* nobody led */

enum cron_state {
#define CRON_STATE(name, text) CRON_##name,
    CRON_STATES(CRON_STATE)
#undef CRON_STATE
};

const char *cron_state_name(enum cron_state state);

struct cron_run {
    int64_t fire_s; /* the scheduled instant */
    int64_t attempt;
    char node[BATON_NAME_MAX];
    uint64_t epoch;
    int64_t start_ms; /* when it was claimed */
};

struct cron_end {
    struct cron_run run; /* .attempt 0: none has ended yet */
    enum cron_state state;
    int exit_code; /* -1: unknown */
    int64_t end_ms;
    char output[CRON_OUTPUT_MAX + 1]; /* UTF-8 */
};

struct cron_record {
    int64_t since_s;       /* when a leader's file had it first */
    int64_t fire_s;        /* decided up to here; 0: none is */
    int64_t next_s;        /* as the writer computed it */
    bool is_removed;       /* the leader's file has the line no more */
    enum cron_state state; /* of fire_s */
    struct cron_run running[CRON_RUNNING_MAX];
    size_t running_count;
    struct cron_end last;
    uint64_t runs, failures, interrupted, skipped, missed;
};

/* What the line says, for readers of the record. Borrowed. */
struct cron_text {
    const char *when, *zone, *command;
};

/* BATON_EPROTO names the member that is wrong; BATON_ENOMEM. */
int cron_record_read(struct cron_record *ret, const void *data, size_t bytes,
                     struct baton_error *reterr);

/* For free(); NULL: out of memory. Equal records give equal text. */
char *cron_record_write(const struct cron_record *record, const struct cron_text *text);

#endif
