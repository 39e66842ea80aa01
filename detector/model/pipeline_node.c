#include "detector/model/pipeline_int.h"

#include "base/error.h"
#include "base/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 64 };

/* A text from outside for a message, cut between characters, never within one. */
static const char *shown(const char *text, char ret[SHOWN_MAX + 4])
{
    size_t bytes = strlen(text);

    if (bytes <= SHOWN_MAX) {
        return text;
    }
    bytes = SHOWN_MAX;
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80) {
        bytes--;
    }
    (void)snprintf(ret, SHOWN_MAX + 4, "%.*s…", (int)bytes, text);
    return ret;
}

int node_check_keys(const struct node *node, const char *const *keys, struct baton_error *reterr)
{
    for (void *at = json_object_iter(node->json); at != NULL;
         at = json_object_iter_next(node->json, at)) {
        const char *key = json_object_iter_key(at);
        struct nearest nearest = {0};
        char text[NEAREST_TEXT_BYTES], cut[SHOWN_MAX + 4];
        bool is_known = false;

        for (size_t i = 0; keys[i] != NULL && !is_known; i++) {
            is_known = strcmp(keys[i], key) == 0;
            nearest_try(&nearest, key, keys[i]);
        }
        if (!is_known) {
            return error_set(reterr, BATON_EPROTO, "%s%s is no field here%s", node->path,
                             shown(key, cut), nearest_text(&nearest, text));
        }
    }
    return 0;
}

int node_init(struct node *ret, const struct node *parent, const char *key, json_t *json,
              struct baton_error *reterr)
{
    struct node node = {.json = json};

    if (!json_is_object(json)) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %s: must be an object", parent->path, key,
                         json == NULL ? "missing" : json_type_name(json_typeof(json)));
    }
    (void)snprintf(node.path, sizeof(node.path), "%s%s.", parent->path, key);
    *ret = node;
    return 0;
}

int node_int(const struct node *node, const char *key, int low, int high, int *value,
             struct baton_error *reterr)
{
    bool is_given;
    int64_t number;
    int rc = json_read_integer(node->json, node->path, key, low, high, &is_given, &number, reterr);

    if (rc == 0 && is_given) {
        *value = (int)number;
    }
    return rc;
}

int node_float(const struct node *node, const char *key, double low, double high, float *value,
               struct baton_error *reterr)
{
    const json_t *found = json_object_get(node->json, key);
    double number;
    int rc;

    if (found == NULL || json_is_null(found)) {
        return 0;
    }
    rc = json_read_number(node->json, node->path, key, low, high, &number, reterr);
    if (rc == 0) {
        *value = (float)number;
    }
    return rc;
}

int node_word(const struct node *node, const char *key, const char *const *words, int count,
              int *value, struct baton_error *reterr)
{
    char must[256] = "must be ";
    const char *word;
    int rc = json_read_text(node->json, node->path, key, false, PIPELINE_NAME_MAX, &word, reterr);

    if (rc != 0 || word == NULL) {
        return rc;
    }
    for (int i = 0; i < count; i++) {
        size_t used = strlen(must);
        (void)snprintf(must + used, sizeof(must) - used, "%s%s",
                       i == 0           ? ""
                       : i == count - 1 ? " or "
                                        : ", ",
                       words[i]);
    }
    rc = word_find(word, words, count, node->path, key, must, reterr);
    if (rc < 0) {
        return rc;
    }
    *value = rc;
    return 0;
}

int node_list(const struct node *node, const char *key, size_t min, size_t max, json_t **list,
              struct baton_error *reterr)
{
    json_t *found;
    int rc = json_read_field(node->json, node->path, key, false, JSON_ARRAY, &found, reterr);

    if (rc == 0 && found != NULL &&
        (json_array_size(found) < min || json_array_size(found) > max)) {
        return error_set(reterr, BATON_EPROTO, "%s%s has %zu elements: must have %zu to %zu",
                         node->path, key, json_array_size(found), min, max);
    }
    if (rc == 0) {
        *list = found;
    }
    return rc;
}

int text_check(const json_t *json, const char *path, const char *key, size_t bytes_max,
               struct baton_error *reterr)
{
    size_t bytes;

    if (!json_is_string(json)) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %s: must be a string", path, key,
                         json_type_name(json_typeof(json)));
    }
    bytes = json_string_length(json);
    if (bytes == 0 || bytes > bytes_max) {
        return error_set(reterr, BATON_EPROTO, "%s%s is %zu bytes long: must be 1 to %zu", path,
                         key, bytes, bytes_max);
    }
    for (const char *text = json_string_value(json); *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return error_set(reterr, BATON_EPROTO,
                             "%s%s holds control characters: none are allowed", path, key);
        }
    }
    return 0;
}

int name_of_part_check(const char *name, const char *path, const char *key,
                       struct baton_error *reterr)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t bytes = strlen(name);
    char cut[SHOWN_MAX + 4];

    if (bytes == 0 || bytes > PIPELINE_NAME_MAX || strspn(name, plain) != bytes) {
        return error_set(reterr, BATON_EPROTO,
                         "%s%s: \"%s\" must be 1 to %d letters, digits, \"_\" and \"-\"", path, key,
                         shown(name, cut), PIPELINE_NAME_MAX);
    }
    return 0;
}

int word_find(const char *word, const char *const *words, int count, const char *path,
              const char *key, const char *must, struct baton_error *reterr)
{
    struct nearest nearest = {0};
    char text[NEAREST_TEXT_BYTES], cut[SHOWN_MAX + 4];

    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    for (int i = 0; i < count; i++) { /* costly, so only where it is needed */
        nearest_try(&nearest, word, words[i]);
    }
    return error_set(reterr, BATON_EPROTO, "%s%s is \"%s\": %s%s", path, key, shown(word, cut),
                     must, nearest_text(&nearest, text));
}

int text_copy(char **ret, const char *text, struct baton_error *reterr)
{
    char *copy = strdup(text);

    if (copy == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    *ret = copy;
    return 0;
}

void *list_new(size_t count, size_t bytes, struct baton_error *reterr)
{
    void *list = calloc(count > 0 ? count : 1, bytes);

    if (list == NULL) {
        (void)error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    return list;
}
