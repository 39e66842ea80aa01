#include "fleet/http/items.h"

#include <inttypes.h>

enum { ITEM_ROOM = 1024 };

void items_init(struct items *items, size_t bytes_max)
{
    items->count = 0;
    buffer_init(&items->text, bytes_max);
    buffer_put_text(&items->text, "{\"items\":[");
}

void items_fini(struct items *items)
{
    buffer_fini(&items->text);
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

void items_add(struct items *items, json_t *item)
{
    if (items->count++ > 0) {
        buffer_put_text(&items->text, ",");
    }
    put_json(&items->text, item);
}

void items_end(struct items *items)
{
    buffer_put_text(&items->text, "]");
}

void items_number(struct items *items, const char *key, uint64_t value)
{
    buffer_printf(&items->text, ",\"%s\":%" PRIu64, key, value);
}

void items_text(struct items *items, const char *key, const char *value)
{
    if (value != NULL) {
        buffer_printf(&items->text, ",\"%s\":", key);
        put_json(&items->text, json_string(value));
    }
}

void items_close(struct items *items)
{
    buffer_put_text(&items->text, "}");
}
