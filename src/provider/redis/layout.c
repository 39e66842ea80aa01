#include "provider/redis/layout.h"

#include <string.h>

struct layout {
    const char *name;
    const char *lock;
    const char *heartbeat;
    bool has_id;  /* the heartbeat's key: behind a colon */
    int longer_s; /* the heartbeat lives longer than the lock by this */
    int check_interval_s;
};

static const struct layout layouts[] = {
    {"master-election", "master", "heartbeat", false, 0, 5},
    {"sovereign", "leader", "heartbeat", true, 5, 15},
};

int layout_find(const struct layout **ret, const char *name, struct baton_error *reterr)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (!name || strcmp(name, layouts[i].name) == 0) {
            *ret = &layouts[i];
            return BATON_OK;
        }
    }
    return error_set(reterr, BATON_EINVAL, "layout \"%.40s\": must be master-election or sovereign",
                     name);
}

const char *layout_name(const struct layout *layout)
{
    return layout->name;
}

void layout_join(char *ret, size_t ret_bytes, const char *const *parts)
{
    size_t used = 0;

    for (; *parts; parts++) {
        size_t bytes = strnlen(*parts, ret_bytes - used - 1);
        memcpy(ret + used, *parts, bytes);
        used += bytes;
    }
    ret[used] = '\0';
}

void layout_lock_key(const struct layout *layout, const char *name, char ret[LAYOUT_KEY_MAX])
{
    const char *parts[] = {name, ":", layout->lock, NULL};

    layout_join(ret, LAYOUT_KEY_MAX, parts);
}

void layout_heartbeat_key(const struct layout *layout, const char *name, const char *id,
                          char ret[LAYOUT_KEY_MAX])
{
    const char *parts[] = {name, ":", layout->heartbeat, layout->has_id ? ":" : NULL, id, NULL};

    layout_join(ret, LAYOUT_KEY_MAX, parts);
}

void layout_heartbeat_prefix(const struct layout *layout, const char *name,
                             char ret[LAYOUT_KEY_MAX])
{
    ret[0] = '\0';
    if (layout->has_id) {
        layout_heartbeat_key(layout, name, "", ret);
    }
}

span layout_heartbeat_lifetime(const struct layout *layout, span lease)
{
    return SPAN_NS(lease.ns + SPAN_S(layout->longer_s).ns);
}

span layout_check_interval(const struct layout *layout)
{
    return SPAN_S(layout->check_interval_s);
}
