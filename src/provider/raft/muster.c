/* Says why nobody can be elected: too few voters answer. Nothing else happens meanwhile that could
 * be logged. */
#include "provider/raft/named.h"
#include "provider/raft/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MUSTER_MS = 5000, MUSTER_AGAIN_MS = 60000 };

bool muster_lacks_quorum(const struct node *node, char *ret, size_t bytes)
{
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    char names[BATON_ERROR_MESSAGE_MAX / 2] = "";
    uint64_t all = 0, here = 0;
    struct raft_status status;

    raft_get_status(node->raft, &status);
    if (status.leader != RAFT_NOBODY) {
        return false;
    }
    for (size_t i = 0; i < now->count; i++) {
        struct baton_member member;
        size_t used = strlen(names);
        event_member_of(node, now->members[i].id, &member);
        all += member.weight;
        here += member.is_alive ? member.weight : 0;
        if (member.weight > 0 && !member.is_alive) {
            (void)snprintf(names + used, sizeof(names) - used, "%s%s at %s", used ? ", " : "",
                           member.name, member.address);
        }
    }
    if (here > all / 2 || names[0] == '\0') {
        return false;
    }
    (void)snprintf(ret, bytes,
                   "%" PRIu64 " of %" PRIu64 " votes %s here, and %" PRIu64
                   " are needed; no answer from %s",
                   here, all, here == 1 ? "is" : "are", all / 2 + 1, names);
    return true;
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
