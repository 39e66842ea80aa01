/* Questions and orders to a pool, for which a process needs no part in it: only a member.
 *
 * Each is acknowledged by the provider, not by the pool's leader: what was stored is carried out by
 * the leader of then, or by the next one. `done` comes exactly once. Errors: BATON_EINVAL (a name
 * or id), BATON_ENOTSUP, BATON_ENOMEM, or the provider's code. An order with BATON_ETIMEDOUT or
 * BATON_EUNAVAILABLE may have been stored, or is stored later; to repeat it does no harm.
 */
#ifndef POOL_CLIENT_H
#define POOL_CLIENT_H

#include "member/member.h"
#include "work/ledger.h"

/* Ends the item: it is never started again, and its copy is stopped. One that is not known, or has
 * ended, stays as it is. */
int pool_cancel(struct member *member, const char *pool, const char *id, provider_done_cb done,
                void *userdata, struct baton_error *reterr);

/* Whether the worker gets nothing new, and what it has is moved. It need not be there. */
int pool_drain(struct member *member, const char *pool, const char *worker, bool is_drained,
               provider_done_cb done, void *userdata, struct baton_error *reterr);

/* All items with their states, as they are stored: `ledger` is borrowed during the call, and NULL
 * on failure. Progress is not stored. */
typedef void (*pool_ledger_cb)(void *userdata, int code, const struct ledger *ledger,
                               const struct baton_error *error);
int pool_list(struct member *member, const char *pool, pool_ledger_cb done, void *userdata,
              struct baton_error *reterr);

/* The result of an item that has ended, borrowed during the call; BATON_ENOENT, and NULL: it has
 * none (yet), or no longer. */
typedef void (*pool_result_cb)(void *userdata, int code, const struct work_result *result,
                               const struct baton_error *error);
int pool_result(struct member *member, const char *pool, const char *id, pool_result_cb done,
                void *userdata, struct baton_error *reterr);

/* What the pool's leader says of itself and its workers (work_leader_status()), borrowed during the
 * call. BATON_ETIMEDOUT: nobody led, or it did not reply; BATON_ECLOSED, a moment after the member
 * was closed and before it may be freed. */
typedef void (*pool_status_cb)(void *userdata, int code, const json_t *status,
                               const struct baton_error *error);
int pool_ask_status(struct member *member, const char *pool, instant deadline, pool_status_cb done,
                    void *userdata, struct baton_error *reterr);

#endif
