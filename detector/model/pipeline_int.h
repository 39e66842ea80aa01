/* The readers of the parts of pipeline.json, for pipeline_parse(). */
#ifndef DETECTOR_MODEL_PIPELINE_INT_H
#define DETECTOR_MODEL_PIPELINE_INT_H

#include "detector/model/nearest.h"
#include "detector/model/pipeline.h"

#include <jansson.h>

enum { NODE_PATH_MAX = 255 };

/* An object of the file and its path: "stages[2].fields." or "". */
struct node {
    json_t *json; /* borrowed */
    char path[NODE_PATH_MAX + 1];
};

/* All readers of a field leave the value as it is if the field is absent or null. */

/* Refuses a field that is not among `keys`; NULL ends them. */
int node_check_keys(const struct node *node, const char *const *keys, struct baton_error *reterr);

/* `json` is the value of `key`, or of list[index] (then `key` is "list[index]"); it must be an
 * object. */
int node_init(struct node *ret, const struct node *parent, const char *key, json_t *json,
              struct baton_error *reterr);

int node_int(const struct node *node, const char *key, int low, int high, int *value,
             struct baton_error *reterr);
int node_float(const struct node *node, const char *key, double low, double high, float *value,
               struct baton_error *reterr);
int node_word(const struct node *node, const char *key, const char *const *words, int count,
              int *value, struct baton_error *reterr);

/* `list` is NULL if the field is absent, else it has `min` to `max` elements. */
int node_list(const struct node *node, const char *key, size_t min, size_t max, json_t **list,
              struct baton_error *reterr);

/* A string that is an element of a list or a value that was found: 1 to `bytes_max` bytes without
 * control characters. `path` and `key` name it. */
int text_check(const json_t *json, const char *path, const char *key, size_t bytes_max,
               struct baton_error *reterr);

/* Reads the name of a model, stage or field: letters, digits, "_" and "-", at most
 * PIPELINE_NAME_MAX. */
int name_of_part_check(const char *name, const char *path, const char *key,
                       struct baton_error *reterr);

/* Returns the index of the word, or an error that offers the nearest one. `must` says what the word
 * must be. */
int word_find(const char *word, const char *const *words, int count, const char *path,
              const char *key, const char *must, struct baton_error *reterr);

int text_copy(char **ret, const char *text, struct baton_error *reterr);

/* Allocates `count` zeroed elements, at least one; NULL with the error if memory is short. */
void *list_new(size_t count, size_t bytes, struct baton_error *reterr);

int models_read(struct pipeline *pipeline, const struct node *root, struct baton_error *reterr);
int stages_read(struct pipeline *pipeline, const struct node *root, struct baton_error *reterr);
int fields_read(struct pipeline_stage *stage, const struct pipeline *pipeline,
                const struct node *node, struct baton_error *reterr);

#endif
