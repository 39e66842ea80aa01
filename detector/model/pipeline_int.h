/* The readers of the parts of pipeline.json, for pipeline_parse(). */
#ifndef DETECTOR_MODEL_PIPELINE_INT_H
#define DETECTOR_MODEL_PIPELINE_INT_H

#include "detector/model/pipeline.h"

#include <jansson.h>
#include <limits.h>

enum { NODE_PATH_MAX = 255, NODE_REQUIRED = INT_MIN };

/* Of all nodes of a file. The first failure stays; after it the readers below do nothing, so that
 * only loops and what would use a value ask node_is_right(). */
struct reading {
    int code;                  /* 0, or of the failure */
    struct baton_error *error; /* NULL: its text is not needed */
};

/* An object of the file and its path: "stages[2].fields." or "". */
struct node {
    struct reading *reading;
    json_t *json; /* borrowed; NULL after a failure */
    char path[NODE_PATH_MAX + 1];
};

static inline bool node_is_right(const struct node *node)
{
    return node->reading->code == 0;
}

/* Fails with the node's path and this text. */
void node_fail(const struct node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* `json` is the value of `key`; it must be an object, whose fields are all among `keys` (NULL ends
 * them; NULL: any). */
void node_init(struct node *ret, const struct node *parent, const char *key, json_t *json,
               const char *const *keys);

void node_check_keys(const struct node *node, const char *const *keys);

/* Read a field. If it is absent or null they return `fallback`, or fail for NODE_REQUIRED; after a
 * failure `low`, 0, NULL. Texts are those of the file. */
int node_int(const struct node *node, const char *key, int low, int high, int fallback);
float node_float(const struct node *node, const char *key, double low, double high,
                 double fallback);
int node_word(const struct node *node, const char *key, const char *const *words, int count,
              int fallback);
const char *node_text(const struct node *node, const char *key, bool is_required, size_t bytes_max);

/* Makes the list `key`, of `min` to `max` elements, an object with the fields "key[0]", "key[1]",
 * …, which the readers of fields read. ret->json is NULL if it is absent. */
void node_list(struct node *ret, const struct node *node, const char *key, size_t min, size_t max);
void node_three(const struct node *node, const char *key, double low, double high, float ret[3]);

/* Returns the number of an object's fields, which must be 1 to `max`. */
size_t node_count(const struct node *node, const char *key, const json_t *object, size_t max);

/* Returns the name of a model, stage or field: letters, digits, "_" and "-", at most
 * PIPELINE_NAME_MAX. */
const char *node_name(const struct node *node, const char *key, const char *name);

/* Returns the index of the word, or fails and offers the nearest one. `must` says what it must be.
 * NULL: it has failed. */
int node_find(const struct node *node, const char *key, const char *word, const char *const *words,
              int count, const char *must);

/* Allocates `count` zeroed elements. NULL: it has failed. */
void *node_new(const struct node *node, size_t count, size_t bytes);

void models_read(struct pipeline *pipeline, const struct node *root);
void stages_read(struct pipeline *pipeline, const struct node *root);

#endif
