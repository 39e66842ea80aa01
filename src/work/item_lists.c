/* Labels and keys: lists of texts. */
#include "work/item.h"

#include "base/json_read.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- Labels ---------------------------------------------------------------------------------- */

static int add_label(char ret[static WORK_NEEDS_MAX], const json_t *value, const char *path,
                     const char *key, size_t at, struct baton_error *reterr)
{
    const char *label = json_string_value(value);
    size_t used = strlen(ret), bytes;

    if (!label || strlen(label) >= WORK_ID_MAX || !work_id_is_valid(label)) {
        return error_set(reterr, BATON_EPROTO,
                         "%s%s[%zu] is %s%.60s%s: must be 1 to %d letters, digits and "
                         "-_.:/{};@+=,",
                         path, key, at, label ? "\"" : "",
                         label ? label : json_type_name(json_typeof(value)), label ? "\"" : "",
                         WORK_ID_MAX - 1);
    }
    bytes = strlen(label);
    if (used + 1 + bytes >= WORK_NEEDS_MAX) {
        return error_set(reterr, BATON_EPROTO, "%s%s has more than %d bytes", path, key,
                         WORK_NEEDS_MAX - 1);
    }
    if (used > 0) {
        ret[used++] = ' ';
    }
    memcpy(ret + used, label, bytes + 1);
    return BATON_OK;
}

int work_labels_read(const json_t *object, const char *path, const char *key,
                     char ret[static WORK_NEEDS_MAX], struct baton_error *reterr)
{
    json_t *list;
    int code = json_read_field(object, path, key, false, JSON_ARRAY, &list, reterr);

    ret[0] = '\0';
    for (size_t i = 0; code == BATON_OK && list && i < json_array_size(list); i++) {
        code = add_label(ret, json_array_get(list, i), path, key, i, reterr);
    }
    return code;
}

json_t *work_labels_json(const char *labels)
{
    json_t *list = json_array();

    while (list && *labels) {
        size_t bytes = strcspn(labels, " ");
        if (bytes > 0 && json_array_append_new(list, json_stringn(labels, bytes)) != 0) {
            json_decref(list);
            return NULL;
        }
        labels += bytes + (labels[bytes] == ' ');
    }
    return list;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

void work_keys_free(char **keys)
{
    for (char **key = keys; key && *key; key++) {
        free(*key);
    }
    free((void *)keys);
}

bool work_keys_equal(char *const *a, char *const *b)
{
    size_t i = 0;

    if (!a || !b) {
        return !a && !b;
    }
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0) {
        i++;
    }
    return !a[i] && !b[i];
}

static bool is_key(const char *text, size_t bytes)
{
    return bytes > 0 && bytes < WORK_KEY_MAX && !text_has_control(text, bytes);
}

int work_keys_copy(char ***ret, const char *const *keys)
{
    size_t count = 0;
    char **copy;

    while (keys[count]) {
        if (count == WORK_KEYS_MAX || !is_key(keys[count], strlen(keys[count]))) {
            return BATON_EINVAL;
        }
        count++;
    }
    copy = (char **)calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < count; i++) {
        if (!(copy[i] = strdup(keys[i]))) {
            work_keys_free(copy);
            return BATON_ENOMEM;
        }
    }
    if (copy) {
        *ret = copy;
    }
    return copy ? BATON_OK : BATON_ENOMEM;
}

static int take_key(char **ret, const json_t *value, const char *path, const char *key, size_t at,
                    struct baton_error *reterr)
{
    if (!json_is_string(value) || !is_key(json_string_value(value), json_string_length(value))) {
        return error_set(
            reterr, BATON_EPROTO,
            "%s%s[%zu] is %s: must be 1 to %d bytes without control characters", path, key, at,
            json_is_string(value) ? "another text" : json_type_name(json_typeof(value)),
            WORK_KEY_MAX - 1);
    }
    *ret = strdup(json_string_value(value));
    return *ret ? BATON_OK : error_set(reterr, BATON_ENOMEM, "%s%s: out of memory", path, key);
}

int work_keys_read(const json_t *object, const char *path, const char *key, char ***ret,
                   struct baton_error *reterr)
{
    json_t *list;
    size_t count;
    char **keys;
    int code = json_read_field(object, path, key, false, JSON_ARRAY, &list, reterr);

    if (code != BATON_OK) {
        return code;
    }
    count = json_array_size(list);
    if (count > WORK_KEYS_MAX) {
        return error_set(reterr, BATON_EPROTO, "%s%s has %zu: at most %d are allowed", path, key,
                         count, WORK_KEYS_MAX);
    }
    keys = list ? (char **)calloc(count + 1, sizeof(*keys)) : NULL;
    if (list && !keys) {
        return error_set(reterr, BATON_ENOMEM, "%s%s: out of memory", path, key);
    }
    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        code = take_key(&keys[i], json_array_get(list, i), path, key, i, reterr);
    }
    if (code != BATON_OK) {
        work_keys_free(keys);
        return code;
    }
    *ret = keys;
    return BATON_OK;
}

json_t *work_keys_json(char *const *keys)
{
    json_t *list = json_array();

    for (size_t i = 0; list && keys[i]; i++) {
        if (json_array_append_new(list, json_string(keys[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
