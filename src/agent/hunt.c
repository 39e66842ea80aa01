/* Kills what acts for a client that has died. A search may take until its limit
 * (guardian/victims.h), and a user can see to it that those for its own clients do. So each has a
 * thread of its own, and for one user only a few are made at a time. */
#include "agent/agent_int.h"

#include "base/errand.h"
#include "guardian/victims.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

enum { LIMIT_MS = 5000, OF_A_USER_MAX = 4 };

struct hunt {
    struct errand errand;
    struct tenant *tenant;
    struct victims victims;
    uid_t user;
    bool has_survivors;
};

static void run(struct errand *errand)
{
    struct hunt *hunt = (struct hunt *)errand;

    hunt->has_survivors = !victims_hunt_for(&hunt->victims, hunt->user, LIMIT_MS);
}

static void go_on(struct agent *agent, uid_t user);

static void on_ended(struct errand *errand)
{
    const struct hunt *hunt = (struct hunt *)errand;
    struct agent *agent = hunt->tenant->agent;

    tenant_hunted(hunt->tenant, hunt->has_survivors);
    go_on(agent, hunt->user);
}

static void release(struct errand *errand)
{
    free(errand);
}

static bool start(struct tenant *tenant)
{
    struct hunt *hunt = calloc(1, sizeof(*hunt));

    if (!hunt) {
        return false;
    }
    hunt->errand = (struct errand){.run = run, .done = on_ended, .free = release};
    hunt->tenant = tenant;
    hunt->user = tenant->peer.uid;
    (void)snprintf(hunt->victims.marker, sizeof(hunt->victims.marker), "%s", tenant->marker);
    return errand_begin(&hunt->errand, tenant->agent->config.loop) == 0;
}

/* Those that wait have their turn, but for an agent that ends: it has no time for all of them. */
static void go_on(struct agent *agent, uid_t user)
{
    struct tenant *tenant = NULL, *next = NULL;
    int count = 0;

    DL_FOREACH (agent->tenants, tenant) {
        count += tenant->peer.uid == user && tenant->is_hunted_for && !tenant->waits_for_hunt;
    }
    DL_FOREACH_SAFE (agent->tenants, tenant, next) {
        if (tenant->peer.uid != user || !tenant->waits_for_hunt || count >= OF_A_USER_MAX) {
            continue;
        }
        tenant->waits_for_hunt = false;
        if (!agent->is_closing && start(tenant)) {
            count++;
        } else {
            tenant_hunted(tenant, true);
        }
    }
}

void hunt_begin(struct tenant *tenant)
{
    tenant->is_hunted_for = tenant->waits_for_hunt = true;
    tenant->holds++;
    go_on(tenant->agent, tenant->peer.uid);
}
