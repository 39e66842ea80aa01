/* Reads what a pool has stored of its items: first the ledger, then the submissions.
 *
 * In this order, since a submission is deleted before its items leave the ledger: what is listed
 * and not in the ledger was never there.
 */
#ifndef POOL_LOAD_H
#define POOL_LOAD_H

#include "member/member.h"

struct load; /* opaque; ends with `done` or load_stop() */

struct load_calls {
    /* A key without "work/POOL/". Borrowed during the call. */
    void (*on_value)(void *userdata, const char *key, const struct provider_value *value);
    /* 0: all values came. Else what failed first; some values may have come. */
    void (*done)(void *userdata, int code, const struct baton_error *error);
    void *userdata;
};

/* Calls back, perhaps before this returns: *ret is written before, and NULL once `done` comes.
 * BATON_ENOMEM; what the provider says comes by `done`. */
int load_begin(struct load **ret, struct member *member, const char *pool,
               const struct load_calls *calls, struct baton_error *reterr);
/* Nothing comes any more. NULL is nothing. */
void load_stop(struct load *load);

#endif
