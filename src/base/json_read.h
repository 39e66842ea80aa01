/* Strict reading of JSON from outside, with the path of what is wrong in every error. Pure.
 *
 * A field reader is given the object, the object's path ("subscriptions[3].") and the key.
 * Absent and null are the same to an optional field. Strings with control characters are refused:
 * nothing that this program reads may contain them.
 */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <baton/error.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A JSON object of at most `bytes_max` bytes nested at most `depth_max` deep, or a negative code.
 */
int json_read_object(const char *bytes, size_t count, size_t bytes_max, size_t depth_max,
                     json_t **object, struct baton_error *reterr);

int json_read_field(const json_t *object, const char *path, const char *key, bool is_required,
                    json_type type, json_t **value, struct baton_error *reterr);

/* `text` is borrowed from the object; 1 to `bytes_max` bytes. NULL when optional and absent. */
int json_read_text(const json_t *object, const char *path, const char *key, bool is_required,
                   size_t bytes_max, const char **text, struct baton_error *reterr);

/* `is_given` may be NULL, then the field is required; `value` is written only if it is given. */
int json_read_integer(const json_t *object, const char *path, const char *key, int64_t low,
                      int64_t high, bool *is_given, int64_t *value, struct baton_error *reterr);

int json_read_number(const json_t *object, const char *path, const char *key, double low,
                     double high, double *value, struct baton_error *reterr);

int json_read_boolean(const json_t *object, const char *path, const char *key, bool *value,
                      struct baton_error *reterr);

/* An optional boolean: absent is false. */
int json_read_flag(const json_t *object, const char *path, const char *key, bool *value,
                   struct baton_error *reterr);

/* The same of one object, field by field: after the first fault nothing more is read. */
struct json_fields {
    const json_t *object; /* NULL only behind a fault */
    const char *path;
    struct baton_error *reterr;
    int code; /* 0, or the first fault's */
};

/* NULL, 0 and false: absent, or a fault. */
json_t *json_take(struct json_fields *fields, const char *key, bool is_required, json_type type);
const char *json_take_text(struct json_fields *fields, const char *key, bool is_required,
                           size_t bytes_max);
int64_t json_take_integer(struct json_fields *fields, const char *key, int64_t low, int64_t high,
                          bool *is_given);
bool json_take_boolean(struct json_fields *fields, const char *key);

/* "a string", "an integer" …: for messages. */
const char *json_type_name(json_type type);

#endif
