/* A registration's life: campaign, requests of the program, and leave.
 */
#include "base/json_load.h"
#include "provider/heirs.h"
#include "provider/redis/client.h"
#include "provider/redis/redis_provider.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Encoded. Other processes read only the id of an entry above 64 KiB. */
enum { METADATA_MAX = 60 * 1024 };

static struct registration *registration_of(struct provider_election *election)
{
    return (struct registration *)election;
}

void registration_wake(const struct registration *registration, char ret[KEY_MAX])
{
    const char *parts[] = {registration->name, WAKE, NULL};

    layout_join(ret, KEY_MAX, parts);
}

struct registration *registration_find(const struct client *client, const char *name, size_t bytes)
{
    struct registration *registration;

    HASH_FIND(hh, client->registrations, name, bytes, registration);
    return registration;
}

void registration_unref(struct registration *registration)
{
    if (--registration->references == 0) {
        registration->next_unused = registration->client->unused;
        registration->client->unused = registration;
    }
}

void registration_answered(struct registration *registration)
{
    struct client *client = registration->client;

    client_enter(client);
    registration_unref(registration);
    client_exit(client);
}

/* The last one may let the client end. */
void registrations_free_unused(struct client *client)
{
    struct registration *registration = client->unused;

    client->unused = NULL;
    while (registration) {
        struct registration *next = registration->next_unused;
        registry_free(registration);
        quorum_end(registration);
        text_drop(client, registration->holder);
        text_drop(client, registration->reported_leader);
        free(registration->metadata);
        free(registration);
        client_release(client);
        registration = next;
    }
}

static int check_metadata(const char *metadata, struct baton_error *reterr)
{
    json_t *object = metadata ? json_load_text(metadata, 0, NULL) : NULL;
    size_t bytes = object ? json_dumpb(object, NULL, 0, JSON_COMPACT) : 0;

    json_decref(object);
    return bytes <= METADATA_MAX
               ? BATON_OK
               : error_set(reterr, BATON_ETOOBIG,
                           "metadata: %zu bytes as they are written out; the others read %d", bytes,
                           METADATA_MAX);
}

static int check(const struct client *client, const struct provider_campaign *campaign,
                 struct baton_error *reterr)
{
    size_t bytes = strlen(campaign->election);

    if (client->is_closing) {
        return error_set(reterr, BATON_ECLOSED, "the provider is closing");
    }
    if (bytes == 0 || bytes >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes",
                         campaign->election, BATON_NAME_MAX - 1);
    }
    if (!text_is_utf8(campaign->election)) {
        return error_set(reterr, BATON_EINVAL, "election \"%s\": is not UTF-8", campaign->election);
    }
    return registration_find(client, campaign->election, bytes)
               ? error_set(reterr, BATON_EEXIST,
                           "election \"%s\": this process takes part in it already",
                           campaign->election)
               : check_metadata(campaign->metadata, reterr);
}

static struct registration *make(struct client *client, const struct provider_campaign *campaign)
{
    size_t name_bytes = strlen(campaign->election) + 1;
    struct registration *registration = calloc(1, sizeof(*registration) + name_bytes);

    if (!registration ||
        (campaign->metadata && !(registration->metadata = strdup(campaign->metadata)))) {
        free(registration);
        return NULL;
    }
    registration->base =
        (struct provider_election){.ops = &redis_provider_ops, .provider = &client->base};
    registration->client = client;
    memcpy(registration->name, campaign->election, name_bytes);
    registration->cell = campaign->cell;
    lease_cell_bind(registration->cell);
    registration->on_event = campaign->on_event;
    registration->userdata = campaign->userdata;
    registration->eligible = campaign->eligible;
    lease_init(&registration->lease, campaign->eligible, 0);
    registration->deadline = INSTANT_NEVER;
    registration->is_starting = true;
    registration->starts = clock_now();
    if (client->start_delay.ns > 0) { /* processes that start together do not all ask at once */
        registration->starts.ns += (int64_t)(client_random() % (uint64_t)client->start_delay.ns);
    }
    enrol_begin(registration);
    registration->references = 1; /* for the table */
    client->open_handles++;
    return registration;
}

/* Adds it to the client's table, the agenda and the server's channels: all or none. */
static int take_place(struct registration *registration)
{
    struct client *client = registration->client;
    char wake[KEY_MAX];

    HASH_ADD_KEYPTR(hh, client->registrations, registration->name, strlen(registration->name),
                    registration);
    if (!registration->hh.tbl) {
        return BATON_ENOMEM;
    }
    registration_wake(registration, wake);
    if (agenda_add(registration) != BATON_OK || quorum_begin(registration) != BATON_OK ||
        client_subscribe(client, wake) != BATON_OK) {
        agenda_remove(registration);
        HASH_DEL(client->registrations, registration);
        return BATON_ENOMEM;
    }
    redis_guardian_slot_begin(registration);
    return BATON_OK;
}

int registration_campaign(struct provider_election **ret, struct provider *provider,
                          const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct registration *registration;
    int r = check(client, campaign, reterr);

    if (r != BATON_OK) {
        return r;
    }
    registration = make(client, campaign);
    if (!registration || take_place(registration) != BATON_OK) {
        if (registration) {
            client_enter(client);
            registration_unref(registration);
            client_exit(client);
        }
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         campaign->election);
    }
    *ret = &registration->base;
    if (client_is_up(client)) {
        /* The first events are delivered by the loop, since a reply takes a turn. */
        registration_start(registration);
        enrol_write(registration, REGISTER_AND_READ);
    }
    return BATON_OK;
}

int registration_check_heir(struct provider_election *election, const char *to,
                            struct baton_error *reterr)
{
    const struct registration *registration = registration_of(election);
    struct heirs heirs = {.bytes = 0};

    if (!to || registry_find(registration, to)) { /* the registry may not have all yet */
        return BATON_OK;
    }
    for (const struct entry *entry = registration->entries; entry; entry = entry->next) {
        heirs_add(&heirs, text_of(entry->name));
    }
    return heirs_refuse(&heirs, to, reterr);
}

int registration_resign(struct provider_election *election, const char *to, instant deadline,
                        struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    struct lease_input input = {.type = LEASE_IN_RESIGN};
    const struct entry *heir = to ? registry_find(registration, to) : NULL;
    (void)deadline;

    if (!registration->lease.held || !instant_before(clock_now(), registration->lease.end)) {
        return error_set(reterr, BATON_ENOTLEADER, "node \"%s\" does not lead",
                         registration->client->node);
    }
    if (to && !heir) {
        return registration_check_heir(election, to, reterr);
    }
    registration->is_offer = !heir && registration->entries;
    heir = heir ? heir : registration->entries;
    registration->heir = heir ? heir->id : NULL; /* the step writes the notice */
    registration->is_urgent = true;
    registration_step(registration, &input);
    registration->heir = NULL;
    registration->is_offer = false;
    return BATON_OK;
}

int registration_set_eligible(struct provider_election *election, bool eligible,
                              struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    struct lease_input input = {.type = LEASE_IN_ELIGIBLE, .eligible = eligible};
    (void)reterr;

    registration->eligible = eligible;
    registration_step(registration, &input);
    enrol_write(registration, REGISTER);
    return BATON_OK;
}

int registration_set_metadata(struct provider_election *election, const char *metadata,
                              struct baton_error *reterr)
{
    struct registration *registration = registration_of(election);
    int r = check_metadata(metadata, reterr);
    char *copy = r == BATON_OK && metadata ? strdup(metadata) : NULL;

    if (r != BATON_OK) {
        return r;
    }
    if (metadata && !copy) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         registration->name);
    }
    free(registration->metadata);
    registration->metadata = copy;
    enrol_write(registration, REGISTER);
    return BATON_OK;
}

/* Voids and releases first, then leaves the registry, then delivers the last event. */
void registration_end(struct registration *registration)
{
    struct client *client = registration->client;
    struct lease_input leave = {.type = LEASE_IN_LEAVE};
    struct baton_event stopped = {.type = BATON_EVENT_STOPPED};
    char wake[KEY_MAX];

    if (registration->is_leaving) {
        return;
    }
    client_enter(client);
    registration->is_leaving = true;
    HASH_DEL(client->registrations, registration);
    agenda_remove(registration);
    registration_step(registration, &leave);
    enrol_leave(registration);
    redis_guardian_slot_end(registration);
    if (!client->is_closing) { /* the connection ends soon */
        registration_wake(registration, wake);
        client_unsubscribe(client, wake);
    }
    registration->cell = NULL;
    registration_deliver(registration, &stopped);
    registration_unref(registration);
    client_exit(client);
}

void registration_leave(struct provider_election *election)
{
    registration_end(registration_of(election));
}

void registration_leader(struct provider_election *election, struct baton_member *ret,
                         uint64_t *ret_epoch)
{
    struct registration *registration = registration_of(election);

    registry_describe(registration, text_of(registration->holder), ret);
    *ret_epoch = registration->holder_epoch;
}
