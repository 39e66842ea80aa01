/* Bytes as a member of a JSON object: as text where that is possible and at most twice as long,
 * else as base64 in a member of the name KEY_base64. Pure.
 */
#ifndef BASE_JSON_BYTES_H
#define BASE_JSON_BYTES_H

#include <baton/error.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_KEY_MAX = 32 }; /* bytes of `key` with "_base64" and the NUL */

/* No bytes leave no member. False: out of memory. */
bool json_put_bytes(json_t *object, const char *key, const void *data, size_t bytes);

/* At most `bytes_max` bytes, for free(); NULL and 0: there are none. BATON_EPROTO with the path of
 * what is wrong, BATON_ENOMEM. */
int json_read_bytes(const json_t *object, const char *path, const char *key, size_t bytes_max,
                    uint8_t **ret, size_t *ret_bytes, struct baton_error *reterr);

#endif
