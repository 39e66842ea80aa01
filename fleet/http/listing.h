/* A list of the API, written item by item: of a thousand objects only one is JSON at a time.
 *
 *   {"items":[…,…],"count":…,"next":…}
 */
#ifndef FLEET_HTTP_LISTING_H
#define FLEET_HTTP_LISTING_H

#include "base/buffer.h"

#include <jansson.h>

struct listing {
    struct buffer text;
    size_t count; /* of items so far */
};

void listing_init(struct listing *listing, size_t bytes_max);
void listing_fini(struct listing *listing);

/* Takes the reference; NULL, which is out of memory, makes the listing fail as its buffer does. */
void listing_add(struct listing *listing, json_t *item);
/* The items are complete; then come further members, the text if it is not NULL; then the end. */
void listing_end(struct listing *listing);
void listing_number(struct listing *listing, const char *key, uint64_t value);
void listing_text(struct listing *listing, const char *key, const char *value);
void listing_close(struct listing *listing);

#endif
