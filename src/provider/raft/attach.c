/* Processes that take part through this node, the agent of their host: each has a handle, by which
 * its agent campaigns for it, with a session, elections and a lease of its own. The process acts by
 * what its agent tells it, so only the process gives an election up.
 *
 *   close ─▶ END: one entry hands on all that it held
 *   detach ─▶ nothing: the session goes on for its lifetime; RESUME with its secret takes it up
 */
#include "provider/raft/asks.h"
#include "provider/raft/named_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static const struct provider_ops attached_ops;

struct node *named_node(struct provider *provider)
{
    return provider->ops == &attached_ops ? ((struct named *)provider)->node
                                          : (struct node *)provider;
}

/* ---- The end --------------------------------------------------------------------------------- */

static void end(struct named *named, void (*closed)(void *userdata), void *userdata)
{
    struct node *node = named->node;

    named->closed = closed;
    named->closed_userdata = userdata;
    named_stop_all(named);
    session_tenant_detach(named->tenant);
    event_deliver(node);
}

static void attach_close(struct provider *handle, void (*closed)(void *userdata), void *userdata)
{
    struct named *named = (struct named *)handle;

    if (!named->is_closing) {
        named->is_closing = true;
        session_tenant_leave(named->tenant);
        end(named, closed, userdata);
    }
}

void attach_detach(struct provider *handle, void (*closed)(void *userdata), void *userdata)
{
    struct named *named = (struct named *)handle;

    if (!named->is_closing) {
        named->is_closing = true;
        end(named, closed, userdata);
    }
}

/* ---- The beginning --------------------------------------------------------------------------- */

static int check(struct node *node, const struct provider_process *process,
                 struct baton_error *reterr)
{
    size_t metadata_bytes = process->metadata ? strlen(process->metadata) : 0;

    if (strlen(process->name) == 0 || strlen(process->name) >= SESSION_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL,
                         "process \"%.40s\": its name must have 1 to %d bytes", process->name,
                         SESSION_NAME_MAX - 1);
    }
    if (metadata_bytes > SESSION_METADATA_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "metadata: %zu bytes; at most %d", metadata_bytes,
                         SESSION_METADATA_MAX);
    }
    return named_ensure_begun(node, reterr);
}

int attach_open(struct provider **ret, struct provider *provider,
                const struct provider_process *process, struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    struct named *named;
    int r = check(node, process, reterr);

    if (r != BATON_OK) {
        return r;
    }
    if (!(named = calloc(1, sizeof(*named)))) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a process");
    }
    named->base.ops = &attached_ops;
    r = named_attach(named, node, process, reterr);
    if (r != BATON_OK) {
        named_free(named);
        return r;
    }
    *ret = &named->base;
    return BATON_OK;
}

static const struct provider_ops attached_ops = {
    .scheme = "raft",
    .summary = "a process that takes part through a node",
    .features = PROVIDER_MEMBERS | PROVIDER_MANY_ELECTIONS,
    .close = attach_close,
    .campaign = named_campaign,
    .check_heir = named_check_heir,
    .resign = named_resign,
    .drained = named_drained,
    .set_eligible = named_set_eligible,
    .set_metadata = named_set_metadata,
    .leave = named_leave,
    .leader = named_leader,
    .members = named_members,
    .detach = attach_detach,
    .elections = named_elections,
    .ask_pass = ask_pass,
    .ask_eligible = ask_eligible,
};
