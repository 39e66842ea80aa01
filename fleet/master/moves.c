/* What would come of a move that a person asks for. */
#include "fleet/master/master_int.h"

#include "base/error.h"

#include <string.h>

struct wish {
    const struct fleet_state *state;
    const struct fleet_worker *to;
    size_t has, coming;               /* of one camera: subscriptions that it has, or not yet */
    const struct fleet_object *unfit; /* one whose needs it lacks; NULL: none */
    const char *moved; /* of those that people move the last one, which counts; NULL: none */
};

static void add(void *userdata, const struct fleet_object *subscription)
{
    struct wish *wish = userdata;
    const char *at = fleet_state_worker_of(wish->state, subscription->id);
    bool is_there = at != NULL && strcmp(at, wish->to->id) == 0;

    if (subscription->subscription.is_paused) {
        return;
    }
    wish->has += is_there;
    wish->coming += !is_there;
    if (!plan_has_labels(wish->to->labels, subscription->subscription.needs)) {
        wish->unfit = subscription;
    }
    if (fleet_state_move(wish->state, subscription->id) != NULL &&
        (wish->moved == NULL || strcmp(wish->moved, subscription->id) < 0)) {
        wish->moved = subscription->id;
    }
}

static struct wish look(const struct master *master, const char *camera,
                        const struct fleet_worker *to)
{
    struct wish wish = {.state = master->config.state, .to = to};

    fleet_state_each_of(wish.state, FLEET_CAMERA, camera, add, &wish);
    return wish;
}

/* NULL: the subscription is paused or gone, and so has no worker. */
static const char *camera_of(const struct fleet_state *state, const char *subscription)
{
    const struct fleet_object *object =
        fleet_state_object(state, FLEET_SUBSCRIPTION, subscription, NULL);

    return object != NULL && !object->subscription.is_paused ? object->subscription.camera : NULL;
}

/* How many subscriptions of other cameras the worker will have: without those that are deleted,
 * paused or moved away, and with those that are moved to it. No plan may have done it yet. */
static size_t count_others(const struct master *master, const char *camera,
                           const struct fleet_worker *to)
{
    const struct fleet_state *state = master->config.state;
    const struct fleet_assigned *assigned = fleet_state_assigned(state, to->id);
    size_t count = 0;

    for (size_t i = 0; assigned != NULL && i < assigned->count; i++) {
        const char *has = camera_of(state, assigned->subscriptions[i]);
        count += has != NULL && strcmp(has, camera) != 0;
    }
    for (const struct fleet_move *move = NULL;
         (move = fleet_state_next_move(state, move)) != NULL;) {
        const char *moved = camera_of(state, move->subscription);
        if (moved == NULL || strcmp(moved, camera) == 0) {
            continue;
        }
        const struct wish wish = look(master, moved, to);
        if (strcmp(wish.moved, move->subscription) == 0) { /* one stands for all of a camera */
            count = strcmp(move->to, to->id) == 0 ? count + wish.coming : count - wish.has;
        }
    }
    return count;
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
    const char *state = why_not(master, to), *camera = subscription->subscription.camera;
    const struct wish wish = look(master, camera, to);
    size_t has = count_others(master, camera, to) + wish.has;
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
    if (wish.unfit != NULL) {
        return error_set(reterr, BATON_EBUSY,
                         "the worker \"%s\" has not all labels that \"%s\" needs (%s)", to->id,
                         wish.unfit->id, wish.unfit->subscription.needs);
    }
    if (wish.coming > 0 && has + wish.coming > room) {
        return error_set(
            reterr, BATON_EBUSY,
            "the worker \"%s\" has %zu of at most %zu subscriptions, and no room for the "
            "%zu of this camera; move others away first, or raise its maxSubscriptions",
            to->id, has, room, wish.coming);
    }
    return BATON_OK;
}
