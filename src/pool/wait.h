/* Waiting until items have ended. */
#ifndef POOL_WAIT_H
#define POOL_WAIT_H

#include "member/member.h"
#include "work/ledger.h"

struct pool_wait; /* opaque; belongs to its opener */

/* An item that has ended: `state` is final. result NULL: it has none (it was cancelled before an
 * attempt ended), or its result is no longer kept. Borrowed during the call. */
struct pool_end {
    const char *id;
    enum work_state state;
    int32_t code; /* of the attempt that ended last; 124: it took too long */
    const struct work_result *result;
};

/* Calls on_end once for each of the items, as they end, perhaps before this returns (*ret is
 * written before); an id that comes twice counts once. The wait may be stopped from inside. An item
 * that nobody submitted is waited for. Errors as client.h. */
int pool_wait_begin(struct pool_wait **ret, struct member *member, const char *pool,
                    const char *const *ids, size_t count,
                    void (*on_end)(void *userdata, const struct pool_end *end), void *userdata,
                    struct baton_error *reterr);
size_t pool_wait_left(const struct pool_wait *wait); /* items that have not ended */
/* Also of a wait that is over; before member_free(). NULL is nothing. */
void pool_wait_stop(struct pool_wait *wait);

#endif
