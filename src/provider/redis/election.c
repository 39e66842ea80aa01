/* This process in an election: how it comes, what it is asked to do, and how it goes.
 */
#include "provider/heirs.h"
#include "provider/redis/client.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* As it is written out. Of an entry above 64 KiB the others read nothing but the id. */
enum { METADATA_MAX = 60 * 1024 };

static struct seat *seat_of(struct provider_election *election)
{
    return (struct seat *)election;
}

void seat_wake(const struct seat *seat, char ret[KEY_MAX])
{
    const char *parts[] = {seat->name, WAKE, NULL};

    layout_join(ret, KEY_MAX, parts);
}

struct seat *seat_find(const struct client *client, const char *name, size_t bytes)
{
    struct seat *seat;

    HASH_FIND(hh, client->seats, name, bytes, seat);
    return seat;
}

void seat_unref(struct seat *seat)
{
    if (--seat->references == 0) {
        seat->next_unused = seat->client->unused;
        seat->client->unused = seat;
    }
}

void seat_answered(struct seat *seat)
{
    struct client *client = seat->client;

    client_enter(client);
    seat_unref(seat);
    client_exit(client);
}

/* The client's own end may hang on the last of them. */
void seats_bury(struct client *client)
{
    struct seat *seat = client->unused;

    client->unused = NULL;
    while (seat) {
        struct seat *next = seat->next_unused;
        registry_free(seat);
        quorum_end(seat);
        text_drop(client, seat->holder);
        text_drop(client, seat->told);
        free(seat->metadata);
        free(seat);
        client_release(client);
        seat = next;
    }
}

static int check_metadata(const char *metadata, struct baton_error *reterr)
{
    json_t *object = metadata ? json_loads(metadata, 0, NULL) : NULL;
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
    return seat_find(client, campaign->election, bytes)
               ? error_set(reterr, BATON_EEXIST, "election \"%s\": taken part in already",
                           campaign->election)
               : check_metadata(campaign->metadata, reterr);
}

static struct seat *make(struct client *client, const struct provider_campaign *campaign)
{
    size_t name_bytes = strlen(campaign->election) + 1;
    struct seat *seat = calloc(1, sizeof(*seat) + name_bytes);

    if (!seat || (campaign->metadata && !(seat->metadata = strdup(campaign->metadata)))) {
        free(seat);
        return NULL;
    }
    seat->base = (struct provider_election){.ops = &redis_provider_ops, .provider = &client->base};
    seat->client = client;
    memcpy(seat->name, campaign->election, name_bytes);
    seat->cell = campaign->cell;
    lease_cell_bind(seat->cell);
    seat->on_event = campaign->on_event;
    seat->userdata = campaign->userdata;
    seat->eligible = campaign->eligible;
    lease_init(&seat->lease, campaign->eligible, 0);
    seat->deadline = INSTANT_NEVER;
    seat->is_starting = true;
    seat->starts = clock_now();
    if (client->start_delay.ns > 0) { /* those who are begun together do not all ask at once */
        seat->starts.ns += (int64_t)(client_random() % (uint64_t)client->start_delay.ns);
    }
    enrol_begin(seat);
    seat->references = 1; /* the table's */
    client->open_handles++;
    return seat;
}

/* Into the client's table, its agenda and the server's channels: all of them or none. */
static int take_place(struct seat *seat)
{
    struct client *client = seat->client;
    char wake[KEY_MAX];

    HASH_ADD_KEYPTR(hh, client->seats, seat->name, strlen(seat->name), seat);
    if (!seat->hh.tbl) {
        return BATON_ENOMEM;
    }
    seat_wake(seat, wake);
    if (agenda_add(seat) != BATON_OK || quorum_begin(seat) != BATON_OK ||
        client_subscribe(client, wake) != BATON_OK) {
        agenda_remove(seat);
        HASH_DEL(client->seats, seat);
        return BATON_ENOMEM;
    }
    redis_guardian_slot_begin(seat);
    return BATON_OK;
}

int seat_campaign(struct provider_election **ret, struct provider *provider,
                  const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct seat *seat;
    int r = check(client, campaign, reterr);

    if (r != BATON_OK) {
        return r;
    }
    seat = make(client, campaign);
    if (!seat || take_place(seat) != BATON_OK) {
        if (seat) {
            client_enter(client);
            seat_unref(seat);
            client_exit(client);
        }
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         campaign->election);
    }
    *ret = &seat->base;
    if (client_is_up(client)) {
        /* The first events come from the loop: the answer to this takes a turn. */
        seat_start(seat);
        enrol_write(seat, REGISTER_AND_READ);
    }
    return BATON_OK;
}

int seat_check_heir(struct provider_election *election, const char *to, struct baton_error *reterr)
{
    const struct seat *seat = seat_of(election);
    struct heirs heirs = {.bytes = 0};

    if (registry_find(seat, to)) {
        return BATON_OK;
    }
    for (const struct entry *entry = seat->entries; entry; entry = entry->next) {
        heirs_add(&heirs, text_of(entry->name));
    }
    return heirs_refuse(&heirs, to, reterr);
}

int seat_resign(struct provider_election *election, const char *to, instant deadline,
                struct baton_error *reterr)
{
    struct seat *seat = seat_of(election);
    struct lease_input input = {.type = LEASE_IN_RESIGN};
    const struct entry *heir = to ? registry_find(seat, to) : NULL;
    (void)deadline;

    if (!seat->lease.held || !instant_before(clock_now(), seat->lease.end)) {
        return error_set(reterr, BATON_ENOTLEADER, "node \"%s\" does not lead", seat->client->node);
    }
    if (to && !heir) {
        return seat_check_heir(election, to, reterr);
    }
    seat->is_offer = !heir && seat->entries;
    heir = heir ? heir : seat->entries;
    seat->heir = heir ? heir->id : NULL; /* the notice is made within the step */
    seat->is_urgent = true;
    seat_step(seat, &input);
    seat->heir = NULL;
    seat->is_offer = false;
    return BATON_OK;
}

int seat_set_eligible(struct provider_election *election, bool eligible, struct baton_error *reterr)
{
    struct seat *seat = seat_of(election);
    struct lease_input input = {.type = LEASE_IN_ELIGIBLE, .eligible = eligible};
    (void)reterr;

    seat->eligible = eligible;
    seat_step(seat, &input);
    enrol_write(seat, REGISTER);
    return BATON_OK;
}

int seat_set_metadata(struct provider_election *election, const char *metadata,
                      struct baton_error *reterr)
{
    struct seat *seat = seat_of(election);
    int r = check_metadata(metadata, reterr);
    char *copy = r == BATON_OK && metadata ? strdup(metadata) : NULL;

    if (r != BATON_OK) {
        return r;
    }
    if (metadata && !copy) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", seat->name);
    }
    free(seat->metadata);
    seat->metadata = copy;
    enrol_write(seat, REGISTER);
    return BATON_OK;
}

/* Void and released first; then the registry; then the last event. */
void seat_end(struct seat *seat)
{
    struct client *client = seat->client;
    struct lease_input leave = {.type = LEASE_IN_LEAVE};
    struct baton_event stopped = {.type = BATON_EVENT_STOPPED};
    char wake[KEY_MAX];

    if (seat->is_leaving) {
        return;
    }
    client_enter(client);
    seat->is_leaving = true;
    HASH_DEL(client->seats, seat);
    agenda_remove(seat);
    seat_step(seat, &leave);
    enrol_leave(seat);
    redis_guardian_slot_end(seat);
    if (!client->is_closing) { /* the connection itself is about to end */
        seat_wake(seat, wake);
        client_unsubscribe(client, wake);
    }
    seat->cell = NULL;
    seat_tell(seat, &stopped);
    seat_unref(seat);
    client_exit(client);
}

void seat_leave(struct provider_election *election)
{
    seat_end(seat_of(election));
}

void seat_leader(struct provider_election *election, struct baton_member *ret, uint64_t *ret_epoch)
{
    struct seat *seat = seat_of(election);

    registry_describe(seat, text_of(seat->holder), ret);
    *ret_epoch = seat->holder_epoch;
}
