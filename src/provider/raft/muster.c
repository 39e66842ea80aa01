/* Says why nobody can be elected: too few voters answer. Nothing else happens meanwhile that could
 * be logged. */
#include "provider/raft/named.h"
#include "provider/raft/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MUSTER_MS = 5000, MUSTER_AGAIN_MS = 60000 };

/* The vote of a member in one half of a joint configuration. */
static uint64_t weight_of(const struct raft_member *member, bool is_old)
{
    return is_old ? member->old_weight : member->weight;
}

static bool half_lacks(char *ret, size_t bytes, const struct raft_configuration *now, bool is_old,
                       muster_is_here is_here, const void *userdata)
{
    char names[BATON_ERROR_MESSAGE_MAX / 2] = "";
    uint64_t all = 0, here = 0;

    for (size_t i = 0; i < now->count; i++) {
        const struct raft_member *member = &now->members[i];
        uint64_t weight = weight_of(member, is_old);
        size_t used = strlen(names);
        bool is_away = weight > 0 && !is_here(userdata, member->id);
        all += weight;
        here += is_away ? 0 : weight;
        if (is_away) {
            (void)snprintf(names + used, sizeof(names) - used, "%s%s at %s", used ? ", " : "",
                           member->name, member->address);
        }
    }
    if (here > all / 2 || names[0] == '\0') {
        return false;
    }
    (void)snprintf(ret, bytes,
                   "%" PRIu64 " of %" PRIu64 " votes%s %s here, and %" PRIu64
                   " are needed; no answer from %s",
                   here, all,
                   !now->is_joint ? ""
                   : is_old       ? " from before a change of the members"
                                  : " from after a change of the members",
                   here == 1 ? "is" : "are", all / 2 + 1, names);
    return true;
}

bool muster_lacks(char *ret, size_t bytes, const struct raft_configuration *now,
                  muster_is_here is_here, const void *userdata)
{
    return half_lacks(ret, bytes, now, false, is_here, userdata) ||
           (now->is_joint && half_lacks(ret, bytes, now, true, is_here, userdata));
}

static bool is_here(const void *userdata, raft_id id)
{
    struct baton_member member;

    event_member_of(userdata, id, &member);
    return member.is_alive;
}

bool muster_lacks_quorum(const struct node *node, char *ret, size_t bytes)
{
    struct raft_status status;

    raft_get_status(node->raft, &status);
    return status.leader == RAFT_NOBODY &&
           muster_lacks(ret, bytes, raft_get_configuration(node->raft), is_here, node);
}

static void on_muster(uv_timer_t *timer)
{
    struct node *node = timer->data;
    struct baton_event event = {.type = BATON_EVENT_ERROR};
    char text[BATON_ERROR_MESSAGE_MAX / 2];

    if (muster_lacks_quorum(node, text, sizeof(text))) {
        log_warning(node->logger, "no-quorum", LOG_STR("text", text));
        (void)uv_timer_start(timer, on_muster, MUSTER_AGAIN_MS, MUSTER_MS);
        if (node->named) { /* else the one election's program has this log */
            (void)error_set(&event.error, BATON_EUNAVAILABLE, "no quorum: %s", text);
            named_take(node, &event);
            event_deliver(node);
        }
    }
}

void muster_begin(struct node *node)
{
    (void)uv_timer_start(&node->muster, on_muster, MUSTER_MS, MUSTER_MS);
}

void muster_soon(struct node *node)
{
    if (uv_is_active((uv_handle_t *)&node->muster) &&
        uv_timer_get_due_in(&node->muster) > MUSTER_MS) {
        muster_begin(node);
    }
}
