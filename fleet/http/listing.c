#include "fleet/http/listing.h"

#include <inttypes.h>

enum { ITEM_ROOM = 1024 };

void listing_init(struct listing *listing, size_t bytes_max)
{
    listing->count = 0;
    buffer_init(&listing->text, bytes_max);
    buffer_put_text(&listing->text, "{\"items\":[");
}

void listing_fini(struct listing *listing)
{
    buffer_fini(&listing->text);
}

/* An object is written at once, or, if there is no room for it, once more. */
static void put_json(struct buffer *text, json_t *json)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9);
    size_t room = ITEM_ROOM, bytes = 0;
    uint8_t *space = buffer_reserve(text, room);

    if (space != NULL && json != NULL) {
        bytes = json_dumpb(json, (char *)space, room, flags);
    }
    if (bytes > room && (space = buffer_reserve(text, bytes)) != NULL) {
        bytes = json_dumpb(json, (char *)space, bytes, flags);
    }
    if (space != NULL && bytes > 0) {
        text->bytes += bytes;
    } else {
        text->failed = true;
    }
    json_decref(json);
}

void listing_add(struct listing *listing, json_t *item)
{
    if (listing->count++ > 0) {
        buffer_put_text(&listing->text, ",");
    }
    put_json(&listing->text, item);
}

void listing_end(struct listing *listing)
{
    buffer_put_text(&listing->text, "]");
}

void listing_number(struct listing *listing, const char *key, uint64_t value)
{
    buffer_printf(&listing->text, ",\"%s\":%" PRIu64, key, value);
}

void listing_text(struct listing *listing, const char *key, const char *value)
{
    if (value != NULL) {
        buffer_printf(&listing->text, ",\"%s\":", key);
        put_json(&listing->text, json_string(value));
    }
}

void listing_close(struct listing *listing)
{
    buffer_put_text(&listing->text, "}");
}
