/* The provider's functions. */
#include "provider/memory/memory_provider.h"

#include "provider/heirs.h"
#include "provider/memory/hub.h"
#include "provider/setting_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct memory *memory_of(struct provider *provider)
{
    return (struct memory *)provider;
}

static struct registration *registration_of(struct provider_election *election)
{
    return (struct registration *)election;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void on_wake(uv_async_t *wake)
{
    struct memory *memory = wake->data;

    if (!memory->is_closing) {
        memory_catch_up(memory);
        expiry_rearm(memory);
    }
}

static void on_expiry(uv_timer_t *timer)
{
    struct memory *memory = timer->data;

    hub_lock(memory->hub);
    hub_keys_expire(memory->hub, clock_now());
    hub_unlock(memory->hub);
    expiry_rearm(memory);
}

static const char *name_in(const char *url)
{
    const char *name = strchr(url, ':') + 1;
    return strncmp(name, "//", 2) == 0 ? name + 2 : name;
}

#define TARGET struct memory

static const struct provider_setting memory_settings[] = {
    TEXT("node", node),
    END,
};

static int take_names(struct memory *memory, const struct provider_config *config, char *ret_hub,
                      struct baton_error *reterr)
{
    const char *name = name_in(config->url);
    size_t length = strcspn(name, "?");
    const char *node = config->node;
    int code = provider_settings_take(memory, memory_settings, config, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (length >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "URL \"memory:%.30s…\": a name has at most %d bytes",
                         name, BATON_NAME_MAX - 1);
    }
    if (node && (!node[0] || strlen(node) >= sizeof(memory->node))) {
        return error_set(reterr, BATON_EINVAL, "node \"%.40s\": must have 1 to %d bytes", node,
                         BATON_NAME_MAX - 1);
    }
    (void)snprintf(ret_hub, BATON_NAME_MAX, "%.*s", (int)length, name);
    if (node) {
        memcpy(memory->node, node, strlen(node) + 1);
    }
    return BATON_OK;
}

static void join_hub(struct memory *memory)
{
    struct hub *hub = memory->hub;

    hub_lock(hub);
    memory->next = hub->memories;
    hub->memories = memory;
    if (!memory->node[0]) {
        (void)snprintf(memory->node, sizeof(memory->node), "memory-%llu",
                       (unsigned long long)++hub->ids);
    }
    hub_unlock(hub);
}

static int memory_open(struct provider **ret, const struct provider_config *config,
                       struct baton_error *reterr)
{
    struct memory *memory = calloc(1, sizeof(*memory));
    char name[BATON_NAME_MAX];
    int code;

    if (!memory) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    memory->base.ops = &memory_provider_ops;
    memory->loop = config->loop;
    memory->notifications_last = &memory->notifications;
    code = take_names(memory, config, name, reterr);
    if (code == BATON_OK && !(memory->hub = hub_join(name))) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (code == BATON_OK && uv_async_init(memory->loop, &memory->wake, on_wake) != 0) {
        hub_leave(memory->hub);
        code = error_set(reterr, BATON_EIO, "memory: no descriptor left");
    }
    if (code != BATON_OK) {
        free(memory);
        return code;
    }
    (void)uv_timer_init(memory->loop, &memory->expiry);
    memory->expiry.timer_cb = on_expiry;
    memory->wake.data = memory->expiry.data = memory;
    memory->open_handles = 2;
    join_hub(memory);
    expiry_rearm(memory);
    *ret = &memory->base;
    return BATON_OK;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct memory *memory = handle->data;
    void (*closed)(void *) = memory->closed;
    void *userdata = memory->closed_userdata;

    if (--memory->open_handles == 0) {
        memory_sweep(memory);
        hub_leave(memory->hub);
        free(memory);
        if (closed) {
            closed(userdata);
        }
    }
}

static void leave_hub(struct memory *memory)
{
    struct hub *hub = memory->hub;
    struct memory **at = &hub->memories;

    hub_lock(hub);
    while (*at != memory) {
        at = &(*at)->next;
    }
    *at = memory->next;
    while (memory->notifications) {
        struct notification *notification = memory->notifications;
        memory->notifications = notification->next;
        notification_free(notification);
    }
    hub_unlock(hub);
}

static void stand(struct registration *registration, enum baton_loss loss)
{
    struct memory *memory = registration->memory;
    struct baton_event stopped = {.type = BATON_EVENT_STOPPED};

    memory->depth++;
    hub_lock(memory->hub);
    hub_election_leave(registration->election, registration, loss);
    hub_unlock(memory->hub);
    memory_report_standing(registration);
    registration->is_leaving = true;
    memory_deliver(registration, &stopped);
    memory->depth--;
    memory_sweep(memory);
}

static void memory_close(struct provider *provider, void (*closed)(void *userdata), void *userdata)
{
    struct memory *memory = memory_of(provider);

    if (memory->is_closing) {
        return;
    }
    memory->depth++;
    for (struct registration *registration = memory->registrations; registration;
         registration = registration->next_own) {
        if (!registration->is_leaving) {
            stand(registration, BATON_LOSS_SHUTDOWN);
        }
    }
    memory->depth--;
    memory->is_closing = true;
    memory->closed = closed;
    memory->closed_userdata = userdata;
    readers_end(memory);
    leave_hub(memory);
    uv_close((uv_handle_t *)&memory->wake, on_handle_closed);
    uv_close((uv_handle_t *)&memory->expiry, on_handle_closed);
}

/* ---- Elections ------------------------------------------------------------------------------- */

static int take_registration(struct registration *registration, const char *name,
                             struct baton_error *reterr)
{
    struct memory *memory = registration->memory;
    struct hub_election *election;
    int code = BATON_OK;

    hub_lock(memory->hub);
    election = hub_election_find(memory->hub, name);
    if (!election) {
        code = error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", name);
    } else if (hub_election_registration_of(election, memory->node)) {
        code = error_set(reterr, BATON_EEXIST,
                         "election \"%s\": node \"%s\" takes part in it already; give this one "
                         "another name",
                         name, memory->node);
    } else {
        hub_election_join(election, registration);
        hub_election_appoint(memory->hub, election, NULL);
    }
    hub_unlock(memory->hub);
    return code;
}

static int memory_campaign(struct provider_election **ret, struct provider *provider,
                           const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct memory *memory = memory_of(provider);
    struct registration *registration;
    int code;

    if (strlen(campaign->election) == 0 || strlen(campaign->election) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes",
                         campaign->election, BATON_NAME_MAX - 1);
    }
    registration = calloc(1, sizeof(*registration));
    if (!registration ||
        (campaign->metadata && !(registration->metadata = strdup(campaign->metadata)))) {
        free(registration);
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         campaign->election);
    }
    registration->base =
        (struct provider_election){.ops = &memory_provider_ops, .provider = provider};
    registration->memory = memory;
    registration->cell = campaign->cell;
    registration->on_event = campaign->on_event;
    registration->userdata = campaign->userdata;
    registration->eligible = campaign->eligible;
    code = take_registration(registration, campaign->election, reterr);
    if (code != BATON_OK) {
        free(registration->metadata);
        free(registration);
        return code;
    }
    registration->next_own = memory->registrations;
    memory->registrations = registration;
    (void)uv_async_send(&memory->wake); /* its first events come from the loop */
    *ret = &registration->base;
    return BATON_OK;
}

/* A leadership that was not reported could also end unreported, if the next one begins at once. */
static void report_before_it_ends(struct registration *registration)
{
    registration->memory->depth++;
    memory_report_standing(registration);
    registration->memory->depth--;
}

/* Under the hub's lock. */
static int check_heir(const struct registration *registration, const char *to,
                      struct baton_error *reterr)
{
    struct heirs heirs = {.bytes = 0};

    for (const struct registration *at = registration->election->registrations; at; at = at->next) {
        if (at == registration || !at->eligible) {
            continue;
        }
        if (strcmp(at->memory->node, to) == 0) {
            return BATON_OK;
        }
        heirs_add(&heirs, at->memory->node);
    }
    return heirs_refuse(&heirs, to, reterr);
}

static int memory_check_heir(struct provider_election *election, const char *to,
                             struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    int code;

    hub_lock(registration->memory->hub);
    code = to ? check_heir(registration, to, reterr) : BATON_OK;
    hub_unlock(registration->memory->hub);
    return code;
}

static int memory_resign(struct provider_election *election, const char *to, instant deadline,
                         struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    struct hub *hub = registration->memory->hub;
    int code;
    (void)deadline;

    report_before_it_ends(registration);
    hub_lock(hub);
    if (registration->election->leader != registration) {
        code = error_set(reterr, BATON_ENOTLEADER, "node \"%s\" does not lead",
                         registration->memory->node);
    } else if ((code = to ? check_heir(registration, to, reterr) : BATON_OK) == BATON_OK) {
        hub_election_hand_over(hub, registration->election, BATON_LOSS_RESIGNED,
                               to ? hub_election_registration_of(registration->election, to)
                                  : NULL);
    }
    hub_unlock(hub);
    return code;
}

static int memory_set_eligible(struct provider_election *election, bool eligible,
                               struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    struct hub *hub = registration->memory->hub;
    (void)reterr;

    report_before_it_ends(registration);
    hub_lock(hub);
    registration->eligible = eligible;
    if (!eligible && registration->election->leader == registration) {
        hub_election_hand_over(hub, registration->election, BATON_LOSS_RESIGNED, NULL);
    } else {
        hub_election_appoint(hub, registration->election, NULL);
    }
    hub_unlock(hub);
    return BATON_OK;
}

static int memory_set_metadata(struct provider_election *election, const char *metadata,
                               struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    struct hub *hub = registration->memory->hub;
    char *copy = metadata ? strdup(metadata) : NULL;

    if (metadata && !copy) {
        return error_set(reterr, BATON_ENOMEM, "election: no memory for the metadata");
    }
    hub_lock(hub);
    free(registration->metadata);
    registration->metadata = copy;
    hub_unlock(hub);
    return BATON_OK;
}

static void memory_leave(struct provider_election *election)
{
    struct registration *registration = registration_of(election);

    if (!registration->is_leaving) {
        stand(registration, BATON_LOSS_RESIGNED);
    }
}

static void memory_leader(struct provider_election *election, struct baton_member *ret,
                          uint64_t *ret_epoch)
{
    struct standing now = memory_look(registration_of(election));

    *ret = now.leader;
    *ret_epoch = now.leader_epoch;
}

static size_t count_registrations(const struct hub_election *election)
{
    size_t count = 0;

    for (const struct registration *registration = election->registrations; registration;
         registration = registration->next) {
        count++;
    }
    return count;
}

static int memory_members(struct provider_election *election, provider_members_cb done,
                          void *userdata, struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    struct hub *hub = registration->memory->hub;
    struct baton_member *members;
    size_t count = 0;

    hub_lock(hub);
    members = calloc(count_registrations(registration->election) + 1, sizeof(*members));
    for (struct registration *at = registration->election->registrations; members && at;
         at = at->next) {
        registration_describe(at, registration->memory, &members[count]);
        if (at->metadata) { /* it may leave during the callback */
            members[count].metadata = strdup(at->metadata);
        }
        count++;
    }
    hub_unlock(hub);
    if (!members) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the members");
    }
    done(userdata, BATON_OK, members, count);
    for (size_t i = 0; i < count; i++) {
        free((char *)members[i].metadata);
    }
    free(members);
    return BATON_OK;
}

const struct provider_ops memory_provider_ops = {
    .scheme = "memory",
    .summary = "within one process, for tests and for programs that run alone",
    .features = PROVIDER_MEMBERS | PROVIDER_CHANNELS | PROVIDER_STATE | PROVIDER_MANY_ELECTIONS,
    .settings = memory_settings,
    .open = memory_open,
    .close = memory_close,
    .campaign = memory_campaign,
    .check_heir = memory_check_heir,
    .resign = memory_resign,
    .set_eligible = memory_set_eligible,
    .set_metadata = memory_set_metadata,
    .leave = memory_leave,
    .leader = memory_leader,
    .members = memory_members,
    .publish = memory_publish,
    .subscribe = memory_subscribe,
    .unsubscribe = memory_unsubscribe,
    .get = memory_get,
    .list = memory_list,
    .put = memory_put,
    .watch = memory_watch,
    .unwatch = memory_unwatch,
};
