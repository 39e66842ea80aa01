#include "base/json_read.h"

#include "base/error.h"
#include "base/json_load.h"
#include "base/text.h"

#include <string.h>

/* jansson's own cap is compiled in and generous; recursion over hostile input is cut here first. */
static bool is_too_deep(const char *bytes, size_t count, size_t depth_max)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < count; i++) {
        char c = bytes[i];
        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > depth_max) {
                return true;
            }
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

/* The value's description; "" if only its place is known. */
static const char *reason(const json_error_t *why, size_t count)
{
    switch (json_error_code(why)) {
    case json_error_duplicate_key:
        return ": a key is there twice";
    case json_error_invalid_utf8:
        return ": it is not UTF-8";
    case json_error_end_of_input_expected:
        return ": something follows its end";
    default:
        return count == 0 ? ": it is empty" : "";
    }
}

/* Mostly jansson does not say so: its error is empty, or of a text's last quote, where no text can
 * be wrong. */
static bool is_short_of_memory(const json_error_t *why, const char *bytes, size_t count)
{
    static const char *const of_a_text[] = {"invalid token", "string or '}' expected"};
    size_t at = why->position > 0 ? (size_t)why->position : 0;
    bool is_short = json_error_code(why) == json_error_out_of_memory || why->text[0] == '\0';

    for (int i = 0; i < 2 && at > 0 && at <= count && bytes[at - 1] == '"'; i++) {
        is_short = is_short || strncmp(why->text, of_a_text[i], strlen(of_a_text[i])) == 0;
    }
    return is_short;
}

int json_read_object(const char *bytes, size_t count, size_t bytes_max, size_t depth_max,
                     json_t **object, struct baton_error *reterr)
{
    json_error_t why;
    json_t *root;

    if (count > bytes_max) {
        return error_set(reterr, BATON_ETOOBIG, "%zu bytes: at most %zu are read", count,
                         bytes_max);
    }
    if (is_too_deep(bytes, count, depth_max)) {
        return error_set(reterr, BATON_EPROTO, "nested more than %zu levels deep", depth_max);
    }
    root = json_load_bytes(count > 0 ? bytes : "", count, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) {
        if (is_short_of_memory(&why, bytes, count)) {
            return error_set(reterr, BATON_ENOMEM, "out of memory while reading a message");
        }
        /* jansson quotes the input, which may hold a URL with its password: only its place. */
        return error_set(reterr, BATON_EPROTO, "not valid JSON at line %d, column %d%s", why.line,
                         why.column, reason(&why, count));
    }
    if (!json_is_object(root)) {
        int rc = error_set(reterr, BATON_EPROTO, "it is %s: must be an object",
                           json_type_name(json_typeof(root)));
        json_decref(root);
        return rc;
    }
    *object = root;
    return 0;
}

const char *json_type_name(json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "unknown";
}

int json_read_field(const json_t *object, const char *path, const char *key, bool is_required,
                    json_type type, json_t **value, struct baton_error *reterr)
{
    json_t *found = json_object_get(object, key);

    if (found == NULL || (json_is_null(found) && !is_required)) {
        if (is_required) {
            return error_set(reterr, BATON_EPROTO, "%s%s is missing: must be %s", path, key,
                             json_type_name(type));
        }
        *value = NULL;
        return 0;
    }
    if (json_typeof(found) != type) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %s: must be %s", path, key,
                         json_type_name(json_typeof(found)), json_type_name(type));
    }
    *value = found;
    return 0;
}

int json_read_text(const json_t *object, const char *path, const char *key, bool is_required,
                   size_t bytes_max, const char **text, struct baton_error *reterr)
{
    json_t *value;
    size_t bytes;
    int rc = json_read_field(object, path, key, is_required, JSON_STRING, &value, reterr);

    if (rc != 0) {
        return rc;
    }
    if (value == NULL) {
        *text = NULL;
        return 0;
    }
    bytes = json_string_length(value);
    if (bytes == 0 || bytes > bytes_max) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %zu bytes long: must be 1 to %zu", path,
                         key, bytes, bytes_max);
    }
    if (text_has_control(json_string_value(value), bytes)) {
        return error_set(reterr, BATON_EPROTO, "%s%s holds control characters: none are allowed",
                         path, key);
    }
    *text = json_string_value(value);
    return 0;
}

int json_read_integer(const json_t *object, const char *path, const char *key, int64_t low,
                      int64_t high, bool *is_given, int64_t *value, struct baton_error *reterr)
{
    json_t *found;
    int64_t number;
    int rc = json_read_field(object, path, key, is_given == NULL, JSON_INTEGER, &found, reterr);

    if (rc != 0) {
        return rc;
    }
    if (is_given != NULL) {
        *is_given = found != NULL;
    }
    if (found == NULL) {
        return 0;
    }
    number = json_integer_value(found);
    if (number < low || number > high) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %lld: must be %lld to %lld", path, key,
                         (long long)number, (long long)low, (long long)high);
    }
    *value = number;
    return 0;
}

int json_read_number(const json_t *object, const char *path, const char *key, double low,
                     double high, double *value, struct baton_error *reterr)
{
    json_t *found = json_object_get(object, key);
    double number;

    if (found == NULL || !json_is_number(found)) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %s: must be a number", path, key,
                         found == NULL ? "missing" : json_type_name(json_typeof(found)));
    }
    number = json_number_value(found);
    if (!(number >= low && number <= high)) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %g: must be %g to %g", path, key, number,
                         low, high);
    }
    *value = number;
    return 0;
}

int json_read_boolean(const json_t *object, const char *path, const char *key, bool *value,
                      struct baton_error *reterr)
{
    json_t *found = json_object_get(object, key);

    if (found == NULL || !json_is_boolean(found)) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %s: must be a boolean", path, key,
                         found == NULL ? "missing" : json_type_name(json_typeof(found)));
    }
    *value = json_boolean_value(found);
    return 0;
}

int json_read_flag(const json_t *object, const char *path, const char *key, bool *value,
                   struct baton_error *reterr)
{
    const json_t *found = json_object_get(object, key);

    if (found == NULL || json_is_null(found)) {
        *value = false;
        return 0;
    }
    return json_read_boolean(object, path, key, value, reterr);
}

json_t *json_take(struct json_fields *fields, const char *key, bool is_required, json_type type)
{
    json_t *value = NULL;

    if (fields->code == 0) {
        fields->code = json_read_field(fields->object, fields->path, key, is_required, type, &value,
                                       fields->reterr);
    }
    return value;
}

const char *json_take_text(struct json_fields *fields, const char *key, bool is_required,
                           size_t bytes_max)
{
    const char *text = NULL;

    if (fields->code == 0) {
        fields->code = json_read_text(fields->object, fields->path, key, is_required, bytes_max,
                                      &text, fields->reterr);
    }
    return text;
}

int64_t json_take_integer(struct json_fields *fields, const char *key, int64_t low, int64_t high,
                          bool *is_given)
{
    int64_t value = 0;

    if (fields->code == 0) {
        fields->code = json_read_integer(fields->object, fields->path, key, low, high, is_given,
                                         &value, fields->reterr);
    }
    return value;
}

bool json_take_boolean(struct json_fields *fields, const char *key)
{
    bool value = false;

    if (fields->code == 0) {
        fields->code = json_read_boolean(fields->object, fields->path, key, &value, fields->reterr);
    }
    return value;
}
