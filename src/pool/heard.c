#include "pool/heard.h"

#include <stdlib.h>
#include <string.h>

struct heard {
    uint64_t session;
    uint64_t ledger;
    instant at;
    UT_hash_handle hh;
    char worker[BATON_NAME_MAX];
};

void heard_note(struct heard **heard, const struct work_report *report, instant now)
{
    struct heard *one;

    HASH_FIND_STR(*heard, report->worker, one);
    if (!one) {
        if (HASH_COUNT(*heard) >= HEARD_MAX || !(one = calloc(1, sizeof(*one)))) {
            return;
        }
        memcpy(one->worker, report->worker, sizeof(one->worker));
        HASH_ADD_STR(*heard, worker, one);
        if (!one->hh.tbl) {
            free(one);
            return;
        }
    }
    if (report->session >= one->session) {
        one->session = report->session;
        one->ledger = report->ledger;
        one->at = now;
    }
}

static void forget(struct heard **heard, struct heard *one)
{
    HASH_DEL(*heard, one);
    free(one);
}

void heard_pass(struct heard **heard, struct work_leader *leader, span lately, instant now)
{
    struct heard *next;

    for (struct heard *one = *heard; one; one = next) {
        next = one->hh.next;
        if (instant_since(now, one->at).ns <= lately.ns) {
            work_leader_heard(leader, one->worker, one->session, one->ledger);
        } else {
            forget(heard, one);
        }
    }
}

void heard_free(struct heard **heard)
{
    while (*heard) {
        forget(heard, *heard); /* NOLINT(clang-analyzer-unix.Malloc) */
    }
}
