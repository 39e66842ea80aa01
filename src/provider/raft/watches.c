#include "provider/raft/watches.h"

#include <stdlib.h>
#include <string.h>

struct watch {
    struct watch *next;
    char *prefix;
    provider_values_cb on_change;
    void *userdata;
    bool is_gone; /* freed when no callback is under way */
};

struct change {
    struct change *next;
    char *name;
    void *data; /* NULL: deleted */
    size_t bytes;
    uint64_t revision;
};

static void free_change(struct change *change)
{
    free(change->name);
    free(change->data);
    free(change);
}

static struct change *take_oldest(struct watches *watches)
{
    struct change *change = watches->oldest;

    if (change) {
        watches->oldest = change->next;
        if (!change->next) {
            watches->after_newest = &watches->oldest;
        }
    }
    return change;
}

void watches_init(struct watches *watches)
{
    *watches = (struct watches){0};
    watches->after_newest = &watches->oldest;
}

void watches_end(struct watches *watches)
{
    struct change *change;

    for (struct watch *watch = watches->first; watch; watch = watch->next) {
        watch->is_gone = true;
    }
    while ((change = take_oldest(watches))) {
        free_change(change);
    }
}

void watches_sweep(struct watches *watches)
{
    struct watch **at = &watches->first;

    while (*at) {
        struct watch *watch = *at;
        if (watch->is_gone) {
            *at = watch->next;
            free(watch->prefix);
            free(watch);
        } else {
            at = &watch->next;
        }
    }
}

int watches_add(struct watches *watches, const char *prefix, provider_values_cb on_change,
                void *userdata)
{
    struct watch *watch = calloc(1, sizeof(*watch));

    if (!watch || !(watch->prefix = strdup(prefix))) {
        free(watch);
        return BATON_ENOMEM;
    }
    watch->on_change = on_change;
    watch->userdata = userdata;
    watch->next = watches->first;
    watches->first = watch;
    return BATON_OK;
}

void watches_drop(struct watches *watches, const char *prefix, const void *userdata)
{
    for (struct watch *watch = watches->first; watch; watch = watch->next) {
        if (!watch->is_gone && watch->userdata == userdata && strcmp(watch->prefix, prefix) == 0) {
            watch->is_gone = true;
            return;
        }
    }
}

static bool is_about(const struct watch *watch, const char *name)
{
    return !watch->is_gone && strncmp(name, watch->prefix, strlen(watch->prefix)) == 0;
}

static bool is_watched(const struct watches *watches, const char *name)
{
    const struct watch *watch = watches->first;

    while (watch && !is_about(watch, name)) {
        watch = watch->next;
    }
    return watch != NULL;
}

void watches_note(struct watches *watches, const char *name, const struct keys_value *value)
{
    struct change *change = is_watched(watches, name) ? calloc(1, sizeof(*change)) : NULL;

    if (!change) {
        return;
    }
    change->name = strdup(name);
    change->data = value->data ? malloc(value->bytes + 1) : NULL;
    change->bytes = value->bytes;
    change->revision = value->revision;
    if (!change->name || (value->data && !change->data)) {
        free_change(change);
        return;
    }
    if (value->bytes > 0) {
        memcpy(change->data, value->data, value->bytes);
    }
    *watches->after_newest = change;
    watches->after_newest = &change->next;
}

bool watches_deliver(struct watches *watches)
{
    struct change *change = take_oldest(watches);
    struct provider_value value;

    if (!change) {
        return false;
    }
    value = (struct provider_value){.key = change->name,
                                    .data = change->data,
                                    .bytes = change->bytes,
                                    .revision = change->revision};
    for (struct watch *watch = watches->first; watch; watch = watch->next) {
        if (is_about(watch, change->name)) {
            watch->on_change(watch->userdata, BATON_OK, &value, 1);
        }
    }
    free_change(change);
    return true;
}
