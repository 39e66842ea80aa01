/* What would come of a move that a person asks for. */
#include "fleet/master/master_int.h"

#include "base/error.h"

#include <string.h>

struct wish {
    const struct fleet_state *state;
    const struct fleet_worker *to;
    size_t count;                     /* subscriptions of the camera that it does not have yet */
    const struct fleet_object *unfit; /* one whose needs it lacks; NULL: none */
};

static void add(void *userdata, const struct fleet_object *subscription)
{
    struct wish *wish = userdata;
    const char *at = fleet_state_worker_of(wish->state, subscription->id);

    if (subscription->subscription.is_paused) {
        return;
    }
    wish->count += at == NULL || strcmp(at, wish->to->id) != 0;
    if (!plan_has_labels(wish->to->labels, subscription->subscription.needs)) {
        wish->unfit = subscription;
    }
}

/* NULL: it takes what is new, as far as it has room. */
static const char *why_not(const struct master *master, const struct fleet_worker *worker)
{
    const struct worker_live *live = worker_table_find(master->config.table, worker->id);

    return live == NULL || !live->is_online ? "offline"
           : worker->is_draining            ? "draining"
           : worker->is_cordoned            ? "cordoned"
                                            : NULL;
}

int master_check_move(const struct master *master, const struct fleet_object *subscription,
                      const struct fleet_worker *to, struct baton_error *reterr)
{
    const char *state = why_not(master, to);
    const struct fleet_assigned *assigned = fleet_state_assigned(master->config.state, to->id);
    struct wish wish = {.state = master->config.state, .to = to};
    size_t has = assigned != NULL ? assigned->count : 0;
    size_t room = survey_room(master, to);

    if (state != NULL) {
        return error_set(reterr, BATON_EBUSY, "the worker \"%s\" is %s, and so gets nothing new",
                         to->id, state);
    }
    if (subscription->subscription.is_paused) {
        return error_set(reterr, BATON_EBUSY,
                         "the subscription \"%s\" is paused, and so has no worker",
                         subscription->id);
    }
    fleet_state_each_of(wish.state, FLEET_CAMERA, subscription->subscription.camera, add, &wish);
    if (wish.unfit != NULL) {
        return error_set(reterr, BATON_EBUSY,
                         "the worker \"%s\" has not all labels that \"%s\" needs (%s)", to->id,
                         wish.unfit->id, wish.unfit->subscription.needs);
    }
    if (wish.count > 0 && has + wish.count > room) {
        return error_set(
            reterr, BATON_EBUSY,
            "the worker \"%s\" has %zu of at most %zu subscriptions, and no room for the "
            "%zu of this camera; move others away first, or raise its maxSubscriptions",
            to->id, has, room, wish.count);
    }
    return BATON_OK;
}
