#include "detector/model/pipeline_int.h"

#include "base/error.h"
#include "base/json_read.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 64, KEY_MAX = 64 };

void node_fail(const struct node *node, const char *format, ...)
{
    char text[BATON_ERROR_MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (node_is_right(node)) {
        node->reading->code =
            error_set(node->reading->error, BATON_EPROTO, "%s%s", node->path, text);
    }
}

static void no_memory(const struct node *node)
{
    if (node_is_right(node)) {
        node->reading->code = error_set(node->reading->error, BATON_ENOMEM, "out of memory");
    }
}

void node_check_keys(const struct node *node, const char *const *keys)
{
    const char *key;
    json_t *value;

    json_object_foreach(node->json, key, value)
    {
        char text[TEXT_NEAREST_BYTES];
        size_t at = 0;

        while (keys[at] != NULL && strcmp(keys[at], key) != 0) {
            at++;
        }
        if (keys[at] == NULL) {
            node_fail(node, "%.*s is no field here%s", SHOWN_MAX, key,
                      text_nearest(text, key, keys, at));
        }
    }
}

void node_init(struct node *ret, const struct node *parent, const char *key, json_t *json,
               const char *const *keys)
{
    *ret = (struct node){.reading = parent->reading};
    if (!json_is_object(json)) {
        node_fail(parent, "%s is %s: must be an object", key,
                  json == NULL ? "missing" : json_type_name(json_typeof(json)));
    }
    if (node_is_right(parent)) {
        ret->json = json;
        (void)snprintf(ret->path, sizeof(ret->path), "%s%s.", parent->path, key);
    }
    if (node_is_right(parent) && keys != NULL) {
        node_check_keys(ret, keys);
    }
}

int node_int(const struct node *node, const char *key, int low, int high, int fallback)
{
    struct reading *reading = node->reading;
    int64_t number = fallback;
    bool is_given;

    if (node_is_right(node)) {
        reading->code = json_read_integer(node->json, node->path, key, low, high,
                                          fallback == NODE_REQUIRED ? NULL : &is_given, &number,
                                          reading->error);
    }
    return node_is_right(node) ? (int)number : low;
}

float node_float(const struct node *node, const char *key, double low, double high, double fallback)
{
    struct reading *reading = node->reading;
    const json_t *found = json_object_get(node->json, key);
    double number = fallback;

    if (node_is_right(node) && found != NULL && !json_is_null(found)) {
        reading->code =
            json_read_number(node->json, node->path, key, low, high, &number, reading->error);
    }
    return (float)number;
}

const char *node_text(const struct node *node, const char *key, bool is_required, size_t bytes_max)
{
    struct reading *reading = node->reading;
    const char *text = NULL;

    if (node_is_right(node)) {
        reading->code = json_read_text(node->json, node->path, key, is_required, bytes_max, &text,
                                       reading->error);
    }
    return text;
}

int node_find(const struct node *node, const char *key, const char *word, const char *const *words,
              int count, const char *must)
{
    char text[TEXT_NEAREST_BYTES];

    if (word == NULL) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    node_fail(node, "%s is \"%.*s\": %s%s", key, SHOWN_MAX, word, must,
              text_nearest(text, word, words, (size_t)count));
    return 0;
}

int node_word(const struct node *node, const char *key, const char *const *words, int count,
              int fallback)
{
    const char *word = node_text(node, key, false, PIPELINE_NAME_MAX);
    char must[256] = "must be ";

    for (int i = 0; i < count; i++) {
        size_t used = strlen(must);
        (void)snprintf(must + used, sizeof(must) - used, "%s%s",
                       i == 0           ? ""
                       : i == count - 1 ? " or "
                                        : ", ",
                       words[i]);
    }
    if (word == NULL && fallback == NODE_REQUIRED) {
        node_fail(node, "%s is missing: %s", key, must);
    }
    return word != NULL                ? node_find(node, key, word, words, count, must)
           : fallback == NODE_REQUIRED ? 0
                                       : fallback;
}

void node_list(struct node *ret, const struct node *node, const char *key, size_t min, size_t max)
{
    struct reading *reading = node->reading;
    json_t *list = NULL, *value;
    size_t index;

    *ret = *node;
    ret->json = NULL;
    if (node_is_right(node)) {
        reading->code =
            json_read_field(node->json, node->path, key, false, JSON_ARRAY, &list, reading->error);
    }
    if (list == NULL) {
        return;
    }
    if (json_array_size(list) < min || json_array_size(list) > max) {
        node_fail(node, "%s has %zu elements: must have %zu to %zu", key, json_array_size(list),
                  min, max);
        return;
    }
    ret->json = json_object();
    json_array_foreach(list, index, value)
    {
        char item[KEY_MAX];

        (void)snprintf(item, sizeof(item), "%s[%zu]", key, index);
        if (json_object_set(ret->json, item, value) != 0) {
            no_memory(node);
        }
    }
    if (json_object_set_new(node->json, key, ret->json) != 0) { /* all texts are the file's */
        no_memory(node);
        ret->json = NULL;
    }
}

void node_three(const struct node *node, const char *key, double low, double high, float ret[3])
{
    struct node list;
    const char *item;
    json_t *value;

    node_list(&list, node, key, 3, 3);
    json_object_foreach(list.json, item, value)
    {
        *ret++ = node_float(&list, item, low, high, 0);
    }
}

size_t node_count(const struct node *node, const char *key, const json_t *object, size_t max)
{
    size_t count = json_object_size(object);

    if (count < 1 || count > max) {
        node_fail(node, "%s has %zu entries: must have 1 to %zu", key, count, max);
    }
    return count;
}

const char *node_name(const struct node *node, const char *key, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t bytes = name != NULL ? strlen(name) : 0;

    if (bytes == 0 || bytes > PIPELINE_NAME_MAX || strspn(name, plain) != bytes) {
        node_fail(node, "%s: \"%.*s\" must be 1 to %d letters, digits, \"_\" and \"-\"", key,
                  SHOWN_MAX, name != NULL ? name : "", PIPELINE_NAME_MAX);
    }
    return name;
}

void *node_new(const struct node *node, size_t count, size_t bytes)
{
    void *list = node_is_right(node) ? calloc(count, bytes) : NULL;

    if (list == NULL) {
        no_memory(node);
    }
    return list;
}
