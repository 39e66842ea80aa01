/* Hubs by name, and the post between the loops that share one. */
#include "provider/memory/hub.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The namespace of this process, as hidden as the one of shared libraries. */
static pthread_mutex_t hubs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hub *hubs;
static uint64_t last_epoch;

static struct hub *hub_new(const char *name)
{
    struct hub *hub = calloc(1, sizeof(*hub));

    if (hub) {
        (void)snprintf(hub->name, sizeof(hub->name), "%s", name);
        (void)pthread_mutex_init(&hub->lock, NULL);
        hub->next_expiry = INSTANT_NEVER;
        hub->next = hubs;
        hubs = hub;
    }
    return hub;
}

struct hub *hub_join(const char *name)
{
    struct hub *hub;

    (void)pthread_mutex_lock(&hubs_lock);
    for (hub = hubs; hub && (!name[0] || strcmp(hub->name, name) != 0); hub = hub->next) {
    }
    if (!hub) {
        hub = hub_new(name);
    }
    if (hub) {
        hub->references++;
    }
    (void)pthread_mutex_unlock(&hubs_lock);
    return hub;
}

static void hub_free(struct hub *hub)
{
    struct hub_election *election = hub->elections, *next;

    hub_keys_free(hub);
    HASH_CLEAR(hh, hub->elections);
    for (; election; election = next) {
        next = election->hh.next;
        free(election);
    }
    (void)pthread_mutex_destroy(&hub->lock);
    free(hub);
}

void hub_leave(struct hub *hub)
{
    bool is_last;

    (void)pthread_mutex_lock(&hubs_lock);
    is_last = --hub->references == 0;
    for (struct hub **at = &hubs; is_last && *at; at = &(*at)->next) {
        if (*at == hub) {
            *at = hub->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&hubs_lock);
    if (is_last) {
        hub_free(hub);
    }
}

void hub_lock(struct hub *hub)
{
    (void)pthread_mutex_lock(&hub->lock);
}

void hub_unlock(struct hub *hub)
{
    (void)pthread_mutex_unlock(&hub->lock);
}

/* Epochs of a later process are greater, since its clock is later. */
uint64_t hub_next_epoch(void)
{
    struct timespec now;
    uint64_t us;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    (void)pthread_mutex_lock(&hubs_lock);
    last_epoch = us > last_epoch ? us : last_epoch + 1;
    us = last_epoch;
    (void)pthread_mutex_unlock(&hubs_lock);
    return us;
}

void hub_wake_all(struct hub *hub)
{
    for (struct memory *memory = hub->memories; memory; memory = memory->next) {
        (void)uv_async_send(&memory->wake);
    }
}

void hub_post(struct memory *memory, struct notification *notification)
{
    notification->next = NULL;
    *memory->notifications_last = notification;
    memory->notifications_last = &notification->next;
    (void)uv_async_send(&memory->wake);
}

void notification_free(struct notification *notification)
{
    if (notification) {
        free(notification->name);
        free(notification->data);
        free(notification);
    }
}
