/* A list of the API, written item by item: of a thousand objects only one is JSON at a time.
 *
 *   {"items":[…,…],"count":…,"next":…}
 */
#ifndef FLEET_HTTP_ITEMS_H
#define FLEET_HTTP_ITEMS_H

#include "base/buffer.h"

#include <jansson.h>

struct items {
    struct buffer text;
    size_t count; /* of items so far */
};

void items_init(struct items *items, size_t bytes_max);
void items_fini(struct items *items);

/* Takes the reference; NULL, which is out of memory, makes the list fail as its buffer does. */
void items_add(struct items *items, json_t *item);
/* The items are complete; then come further members, the text if it is not NULL; then the end. */
void items_end(struct items *items);
void items_number(struct items *items, const char *key, uint64_t value);
void items_text(struct items *items, const char *key, const char *value);
void items_close(struct items *items);

#endif
