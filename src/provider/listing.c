#include "provider/listing.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 8 };

void listing_fini(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free((char *)listing->values[i].key); /* and the data behind it */
    }
    free(listing->values);
    *listing = (struct listing){0};
}

size_t listing_cost(const struct provider_value *value)
{
    return sizeof(*value) + strlen(value->key) + value->bytes + 2; /* a NUL behind each */
}

static bool make_room(struct listing *listing)
{
    size_t room = listing->room > 0 ? 2 * listing->room : ROOM_MIN;
    struct provider_value *values;

    if (listing->count < listing->room) {
        return true;
    }
    values = reallocarray(listing->values, room, sizeof(*values));
    if (!values) {
        return false;
    }
    listing->values = values;
    listing->room = room;
    return true;
}

int listing_add(struct listing *listing, const struct provider_value *value)
{
    size_t key_bytes = strlen(value->key) + 1;
    char *copy = make_room(listing) ? malloc(key_bytes + value->bytes + 1) : NULL;

    if (!copy) {
        return BATON_ENOMEM;
    }
    memcpy(copy, value->key, key_bytes);
    if (value->bytes > 0) {
        memcpy(copy + key_bytes, value->data, value->bytes);
    }
    copy[key_bytes + value->bytes] = '\0';
    listing->values[listing->count] = *value;
    listing->values[listing->count].key = copy;
    listing->values[listing->count].data = copy + key_bytes;
    listing->count++;
    listing->bytes += listing_cost(value);
    return BATON_OK;
}
